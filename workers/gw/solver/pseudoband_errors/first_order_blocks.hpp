#pragma once

#include <map>
#include <string>
#include <vector>

#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
#include "workers/gw/solver/pseudoband_errors/screened_elements_at_q.hpp"
#include "workers/gw/solver/pseudoband_errors/sigma_response.hpp"

namespace quasi::gw {

/// At most this number of devices make changes of the poles from whole matrices in host memory at
/// the same time.
inline constexpr int kChangesAtATime = 2;

/// Returns the bytes that a device needs to make a change of the poles of one q and to keep
/// `n_changes` changes.
/// @param n_g  plane waves of W of the largest q
/// @param real  χ, ε⁻¹ and the strengths of the poles have no imaginary parts
std::int64_t bytes_of_change(std::int64_t n_g, std::int64_t n_changes, bool real);
/// Returns true if one device has room for bytes_of_change(). Devices then keep the changes that
/// they make, and copy them from each other.
bool devices_keep_changes(std::int64_t n_g, std::int64_t n_changes, bool real,
                          const SigmaOptions& options);

/// Calculates the energies without a block by the first order of Σ in the change of its poles and
/// of the vectors (docs/theory/gw.md 9.3). ε of each block is inverted, and all blocks share one
/// sum over bands.
class FirstOrderBlocks final : public BlockEnergies {
 public:
  /// Prepares the sums of a job. `screening`, `run` and the objects of `context` must outlive this
  /// object.
  /// @param screening  χ by groups as ScreeningStep sums it; null if ε⁻¹ stays that of the job
  FirstOrderBlocks(const Deck& deck, const ExchangeCorrelation& vxc, const StepContext& context,
                   GroupedScreening* screening, Calculation& run);
  std::vector<Quasiparticle> without(int block) override;
  std::vector<Quasiparticle> at_nodes() override;
  /// Makes the changes of the poles, once.
  void prepare() override;
  bool sum_sigma() override;

 private:
  /// Calculates the parts of all changes, and returns Σ of the poles by segments.
  /// @param screened_exchange  SX − X of occupied bands is summed separately
  std::vector<SigmaOfModel> sum_bands(bool screened_exchange);
  bool shares_sum_with_sigma() const;
  /// Returns the poles of W at every q. Each has one change for every block of random vectors, and
  /// changes for the nodes of the windows.
  std::vector<ChangingPoles> changing_poles();
  /// Returns the segments of bands whose contributions to Σ are summed separately. The first
  /// segment holds the protected bands, and each further one holds the random vectors of one block.
  BandSegments segments() const;
  /// Takes Σ of each block from that of the segments.
  void take_blocks(const std::vector<SigmaOfModel>& own);
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
  bool has_nodes_;                    ///< windows have nodes, at which their energies may lie
  bool ready_ = false;                ///< the sums over bands are done
  std::vector<ChangingPoles> poles_;  ///< until the sums over bands; by irreducible q
  std::map<const GwKernels*, PolesOnDevice> loaded_;  ///< an entry for every device
  std::vector<SigmaChanges> by_poles_;  ///< without each block, then at the nodes of windows
  /// Σ of the vectors of each block with the poles of the job, less their closed sums.
  std::vector<SigmaChanges> of_blocks_;
  SigmaChanges to_nodes_;  ///< change of all blocks with windows at their nodes
};

}  // namespace quasi::gw
