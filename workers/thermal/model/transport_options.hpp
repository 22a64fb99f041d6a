#pragma once

#include <vector>

#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Solver of the linearised BTE beyond the relaxation-time approximation (docs/theory/thermal.md
/// 8).
enum class Solver {
  kConjugateGradients,  ///< symmetric operator (symmetric broadening) only
  kGmres,               ///< any operator
  kFixedPoint,          ///< the iteration of ShengBTE and FourPhonon
};

/// Limits that end an iteration of the BTE.
struct IterationOptions {
  Solver solver = Solver::kConjugateGradients;
  int max_iterations = 1000;
  double convergence_tolerance = 1e-5;  ///< relative residual
};

/// Axes and radii of cylindrical wires.
struct WireOptions {
  std::vector<Index3> orientations;  ///< axes in lattice coordinates
  double radius_min_nm = 5.0, radius_max_nm = 505.0, radius_step_nm = 100.0;
};

/// Options for κ and derived quantities from modes and rates.
struct TransportOptions {
  HarmonicOptions harmonic;
  double omega_max_rad_ps = 1e100;  ///< faster modes take no part
  int n_ticks = 100;  ///< number of points of cumulative κ and of the density of states
  IterationOptions iteration;
  WireOptions wires;

  const PhysicalConstants& constants() const { return harmonic.constants; }
};

}  // namespace quasi::thermal
