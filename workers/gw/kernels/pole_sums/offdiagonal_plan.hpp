#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pole_sums/separable_pole.hpp"

namespace quasi::gw {

/// Consecutive energies of one band.
struct EnergyRun {
  std::int64_t band = 0;
  std::int64_t begin = 0, end = 0;
};

/// Which (n, E) of the off-diagonal sum go which way, the same on every device.
struct OffDiagonalPlan {
  std::vector<EnergyRun> direct;  ///< by the two products, in order of bands
  PoleRange separable;            ///< of the pairs that are not direct
  SeparablePole pole;             ///< empty if everything is direct
  /// Sign and c_k(|E_e − E_n|) of each separable pair, 0 for direct ones; [K][n_energies][n_bands].
  std::vector<double> coefficient;
  std::int64_t pairs = 0, direct_pairs = 0;
  double fit_seconds = 0.0;
};

/// Which pairs are direct; `pole` and `coefficient` are fit_separable_pairs' to find, while a
/// device works on the direct ones.
/// @param finite_pole_min_ry, finite_pole_max_ry  over elements that act and are not static
OffDiagonalPlan plan_offdiagonal(View<const double, 1> energies_ry, View<const double, 1> band_ry,
                                 View<const double, 1> occupation, const PoleRules& rules,
                                 const GwKernels::OffDiagonalOptions& options,
                                 double finite_pole_min_ry, double finite_pole_max_ry);

void fit_separable_pairs(OffDiagonalPlan& plan, View<const double, 1> energies_ry,
                         View<const double, 1> band_ry, View<const double, 1> occupation,
                         const PoleRules& rules, const GwKernels::OffDiagonalOptions& options);

/// Smallest and largest ω̃ of elements with A ≠ 0 that are not static; {1, 1} if there is none.
struct FinitePoles {
  double min_ry = 1.0, max_ry = 1.0;
};
FinitePoles finite_poles(const PlasmonPoleView& model);

}  // namespace quasi::gw
