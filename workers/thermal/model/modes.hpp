#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Two modes of one degenerate subspace at an irreducible point, or one mode twice. Their elements
/// of the velocity operator beyond the mean velocity are Δ_ss' (docs/theory/thermal.md 8).
struct SubspacePair {
  std::int64_t row = 0, other = 0;  ///< irreducible point × branches + branch; other ≤ row
  Mat3 product_km2_s2{};            ///< Re Δ_ss' ⊗ Δ_s's
};

/// Harmonic modes on the full mesh (docs/theory/thermal.md 3). The number of a mode is
/// point·n_branches + branch.
struct Modes {
  std::int64_t n_q = 0;
  int n_branches = 0;
  std::vector<double> omega_rad_ps;  ///< [n_q][nb]; the three acoustic modes at Γ are exactly 0
  std::vector<std::complex<double>> eigenvector;  ///< [n_q][nb: branch][nb: 3κ+α], unit length;
                                                  ///< phases of lattice vectors only: periodic in q
  std::vector<double> velocity_km_s;              ///< [n_q][nb][3]; nm/ps
  std::vector<double> spread_rad_ps;   ///< [n_q][nb][3]; p of physics/broadening.hpp, without sb
  std::vector<std::int32_t> subspace;  ///< [n_q][nb] first branch of the degenerate set
  std::vector<SubspacePair> subspace_pairs;  ///< sorted by row; empty with compat
  /// [n_irr][nb] mean over the degenerate set of Σ_s' Re Δ_ss' ⊗ Δ_s's; empty with compat
  std::vector<Mat3> velocity_variance_km2_s2;

  std::vector<std::string> warnings;
  double largest_raw_omega_gamma_rad_ps = 0.0;  ///< |ω| of the acoustic modes before zeroing
  double most_negative_omega_rad_ps = 0.0;      ///< 0 if all are real
  double star_deviation_rad_ps = 0.0;           ///< largest difference of ω over a star

  std::int64_t n_modes() const { return n_q * n_branches; }
  /// Returns true for modes that take part in scattering: 0 < ω ≤ max. Zero modes and imaginary
  /// modes take no part.
  bool active(std::int64_t mode, double omega_max_rad_ps) const {
    return omega_rad_ps[mode] > 0.0 && omega_rad_ps[mode] <= omega_max_rad_ps;
  }
};

}  // namespace quasi::thermal
