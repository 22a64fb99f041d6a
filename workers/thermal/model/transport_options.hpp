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

/// Choice of solver and limits that end an iteration of the BTE.
struct IterationOptions {
  bool enabled = true;  ///< false: relaxation-time approximation only
  Solver solver = Solver::kConjugateGradients;
  int max_iterations = 1000;
  double convergence_tolerance = 1e-5;  ///< relative residual
};

/// Cylindrical wires, with their axes and radii.
struct WireOptions {
  bool enabled = false;
  std::vector<Index3> orientations;  ///< axes in lattice coordinates
  double radius_min_nm = 5.0, radius_max_nm = 505.0, radius_step_nm = 100.0;
};

/// Scattering rates at which κ is computed again from the same matrix elements.
struct SweepOptions {
  std::vector<double> isotope_factors;  ///< isotope scattering is multiplied by each
  std::vector<double> grain_sizes_nm;   ///< boundary lengths
};

/// A sheet that is one cell high, whose κ is quoted for a thickness.
struct SheetOptions {
  double thickness_nm = 0.0;  ///< 0: a bulk crystal
  int axis = 3;               ///< lattice vector normal to the sheet, 1 to 3
};

/// Options for κ and derived quantities from modes and rates.
struct TransportOptions {
  HarmonicOptions harmonic;
  std::vector<double> temperatures_k;
  double omega_max_rad_ps = 1e100;  ///< faster modes take no part
  int n_ticks = 100;  ///< number of points of cumulative κ and of the density of states
  IterationOptions iteration;
  WireOptions wires;
  SweepOptions sweep;
  bool coherence = true;  ///< computes the Wigner conductivity between branches

  const PhysicalConstants& constants() const { return harmonic.constants; }
};

}  // namespace quasi::thermal
