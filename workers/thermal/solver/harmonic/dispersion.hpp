#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/model/path_options.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"

namespace quasi::thermal {

/// Phonons along a path (docs/theory/thermal.md 3.5). Every segment has its own points at both
/// ends, so a vertex between two segments occurs twice.
struct Dispersion {
  int n_branches = 0;
  std::vector<Vec3> q_fractional;          ///< [point]
  std::vector<double> distance_per_nm;     ///< [point] length of the path up to the point
  std::vector<std::int64_t> segment;       ///< [point]
  std::vector<std::int64_t> vertex_point;  ///< [end of a segment] number of its point
  std::vector<std::string> vertex_label;   ///< [end of a segment]
  std::vector<double> omega_rad_ps;        ///< [point][branch], ascending
  std::vector<double> velocity_km_s;       ///< [point][branch][3], means over degenerate sets
  std::vector<std::int32_t> band;          ///< [point][branch] number of the continuous band

  std::int64_t n_points() const { return static_cast<std::int64_t>(q_fractional.size()); }
};

/// Diagonalises along a path. At Γ of a polar crystal the direction of the segment decides the
/// dipole term. Bands are continued by the overlaps of their eigenvectors.
/// @throws NotConverged if a diagonalisation fails
Dispersion dispersion_along(const PathOptions& path, const Crystal& crystal,
                            const SecondOrder& constants, const HarmonicOptions& options);

/// Interpolates rates of the mesh linearly in ln w to the points of a path, [point][branch] in
/// 1/ps, with branches in the order of ω. Γ of the mesh is left out; points with no other neighbour
/// get 0.
/// @param rate_per_ps  [irreducible point][branch]
std::vector<double> rates_along(const Dispersion& dispersion, const Transport& transport,
                                const std::vector<double>& rate_per_ps);

/// Returns the assignment of rows to columns with the largest sum of weights, [row] (Hungarian
/// method [kuhn1955]).
/// @param weight  [n][n]
std::vector<int> best_assignment(int n, const std::vector<double>& weight);

}  // namespace quasi::thermal
