#pragma once

#include <functional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"

namespace quasi::thermal {

/// Begin here: the linearised BTE at one temperature, A F = ω v (docs/theory/thermal.md 8), as its
/// diagonal and its in-scattering:
///   (A F)_λ = w_λ F_λ − (in-scattering of F)_λ.
/// Parts of the scattering that are treated in relaxation-time approximation enter the diagonal
/// only.
struct CollisionOperator {
  std::vector<double> diagonal_per_ps;  ///< [n_rows], > 0 if a row conducts
  /// In-scattering of a field, [n_modes][3] on the full mesh → [n_rows][3].
  std::function<std::vector<double>(const std::vector<double>&)> in_scattering;
  bool symmetric = false;  ///< in the inner product Σ mult n(n+1) F·G
};

struct IterativeSolution {
  std::vector<double> f;  ///< [n_rows][3]
  int iterations = 0;
  double residual = 0.0;                     ///< relative, in the solver's norm
  std::vector<Mat3> kappa_history_w_per_mk;  ///< after every iteration; the first one is the RTA
};

/// Solves A F = ω v from F = ω v/w by the method of transport.options.iteration
/// (docs/theory/thermal.md 8).
/// @throws NotConverged after max_iterations, with the residual.
IterativeSolution solve_bte(const Transport& transport, double temperature_k,
                            const CollisionOperator& collision, Progress& progress);

/// Spreads a field from the rows over the whole mesh: F(gq) = R_g F(q) for each branch.
/// [n_modes][3]
std::vector<double> spread_over_stars(const Transport& transport, const std::vector<double>& rows);

}  // namespace quasi::thermal
