#pragma once

#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// Errors of a sum over the zone whose part at q → 0 comes from samples, in the order of
/// quasiparticles().
struct SamplingErrors {
  std::vector<double> half_change_ev;  ///< change of Σ with every second sample
  /// Two standard deviations by a grid with half or a third of the points along each axis,
  /// negative for occupied states; empty: there is no such grid.
  std::vector<double> grid_change_ev;
};

/// Returns true where Σ at the samples can replace q → 0: the symmetric images of the samples
/// leave no direction of the plane special, and Σ is not continued from the imaginary axis.
bool samples_replace_zero(const MeanField& field, const std::vector<DielectricMatrix>& samples,
                          SigmaMethod method);

/// Replaces the terms of q → 0 in Σ of a slab by weighted sums at all samples S p_j of the
/// crystal's symmetry (docs/theory/gw.md 5.2):
///
///   Σ_l(q → 0) = −f_l w_0 + Σ_j w_j ⟨Σ_l(S p_j)⟩_S
///
/// States at k − S p_j are those of H. Exchange, W, its wings and its poles are taken at p_j.
/// @param epsilon  ε⁻¹ of the grid with the heads of the samples
/// @param samples  ε⁻¹ at p_j
/// @param sums     Σ by outer k, then spin, completed by finish_self_energy()
/// @pre samples_replace_zero()
SamplingErrors replace_zero_by_samples(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const std::vector<DielectricMatrix>& samples,
                                       const SigmaOptions& options, const StepContext& context,
                                       std::vector<SelfEnergyAtK>& sums);

}  // namespace quasi::gw
