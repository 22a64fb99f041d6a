#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Consecutive energies of one band.
struct EnergyRun {
  std::int64_t band = 0;
  std::int64_t begin = 0, end = 0;
};

/// Division of the pairs (n, E) of a full-matrix sum into direct and separable ones. It does not
/// depend on the device. See docs/theory/gw.md 7 for the equations.
struct OffDiagonalPlan {
  std::vector<EnergyRun> direct;  ///< pairs treated by the two products, in order of bands
  PoleRange separable;            ///< of the pairs that are not direct
  SeparablePole pole;             ///< empty if everything is direct
  /// Sign and c_k(|E_e − E_n|) of each separable pair, 0 for direct ones; [K][n_energies][n_bands].
  std::vector<double> coefficient;
  std::int64_t pairs = 0, direct_pairs = 0;
  double fit_seconds = 0.0;
};

/// Smallest and largest ω̃ of elements with A ≠ 0 that are not static; {1, 1} if there is none.
struct FinitePoles {
  double min_ry = 1.0, max_ry = 1.0;
};
FinitePoles finite_poles(const PlasmonPoleView& model);

/// Finds the direct pairs. fit_separable_pairs fills `pole` and `coefficient` later, while a device
/// works on the direct pairs.
/// @throws InvalidInput for an occupation outside [0, 1] or an E − E_n that is not finite
OffDiagonalPlan plan_offdiagonal(const OffDiagonalTerms& terms, const PoleRules& rules,
                                 const OffDiagonalOptions& options, const FinitePoles& poles);

/// Fits the separable sums to the pairs that are not direct.
void fit_separable_pairs(OffDiagonalPlan& plan, const OffDiagonalTerms& terms,
                         const PoleRules& rules, const OffDiagonalOptions& options);

}  // namespace quasi::gw
