#pragma once

#include <string>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/grouped_screening.hpp"
#include "workers/gw/solver/self_energy/exchange_correlation.hpp"

// The folder workers/gw/solver/pseudoband_errors calculates the statistical errors of pseudobands.
// Begin with statistical_errors.hpp.
namespace quasi::gw {

/// True for a job with error bars whose blocks of random vectors can share χ of protected bands.
/// Other such jobs are repeated for each block: with a static subspace, or a graphical solution.
bool shares_blocks(const Deck& deck, const Calculation& run);

/// Calculates the quasiparticle energies that a finished job would have with fewer random vectors
/// or with other energies of windows. Only ε⁻¹, its poles and the total Σ are calculated anew.
/// χ is a weighted sum over groups of bands, and the random vectors are those of the job
/// (docs/theory/gw.md 9.3).
class BlockEnergies {
 public:
  /// @param screening  χ by groups as ScreeningStep sums it; null: ε⁻¹ is that of the job
  BlockEnergies(const Deck& deck, const ExchangeCorrelation& vxc, const StepContext& context,
                GroupedScreening* screening, Calculation& run);
  /// Calculates the energies without one block of vectors in χ and Σ, counted from 0.
  std::vector<Quasiparticle> without(int block);
  /// Calculates the energies with the energies of windows at their nodes.
  std::vector<Quasiparticle> at_nodes();

 private:
  std::vector<Quasiparticle> solved(const std::string& scope, const std::vector<double>& weights,
                                    int bands);
  const Deck& deck_;
  std::vector<std::vector<double>> vxc_ev_;
  const StepContext context_;
  GroupedScreening* screening_;
  Calculation& run_;
};

}  // namespace quasi::gw
