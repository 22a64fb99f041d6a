#pragma once

#include <map>
#include <string>
#include <vector>

#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
#include "workers/gw/solver/pseudoband_errors/block_sums.hpp"
#include "workers/gw/solver/pseudoband_errors/screened_elements_at_q.hpp"

namespace quasi::gw {

/// Devices that make changes of the poles from whole matrices in host memory at the same time.
inline constexpr int kChangesAtATime = 2;

/// Energies without a block by the first order of Σ in the change of its poles and of the vectors
/// (docs/theory/gw.md 9.3). ε of each block is inverted, and all blocks share two sums over bands.
class FirstOrderBlocks final : public BlockEnergies {
 public:
  /// @param screening  χ by groups as ScreeningStep sums it; null: ε⁻¹ is that of the job
  FirstOrderBlocks(const Deck& deck, const ExchangeCorrelation& vxc, const StepContext& context,
                   GroupedScreening* screening, Calculation& run);
  std::vector<Quasiparticle> without(int block) override;
  std::vector<Quasiparticle> at_nodes() override;

 private:
  /// Calculates the parts of all changes, once.
  void prepare();
  /// Poles of W at every q, with a change for each block and for the nodes of windows.
  std::vector<ChangingPoles> changing_poles();
  /// Makes a change of the poles on one device (screened_elements_at_q.hpp).
  PoleChange change_on_device(const ChangingPoles& poles, std::size_t iq,
                              const std::vector<double>& weights, ScreenedElements elements,
                              GwKernels& kernels);
  std::vector<Quasiparticle> with_change(const SigmaChanges& change) const;

  std::vector<std::vector<double>> vxc_ev_;
  const StepContext context_;
  GroupedScreening* screening_;
  Calculation& run_;
  SigmaOptions options_;
  bool has_nodes_;  ///< windows have nodes, at which their energies may lie
  bool ready_ = false;
  std::map<const GwKernels*, PolesOnDevice> loaded_;  ///< an entry for every device
  std::vector<SigmaChanges> by_poles_;  ///< without each block, then at the nodes of windows
  BlockSumsOfSigma of_blocks_;
};

}  // namespace quasi::gw
