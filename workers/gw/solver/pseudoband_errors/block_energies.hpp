#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/grouped_screening.hpp"
#include "workers/gw/solver/self_energy/exchange_correlation.hpp"

// The folder workers/gw/solver/pseudoband_errors calculates the statistical errors of pseudobands.
// Begin with statistical_errors.hpp.
namespace quasi::gw {

/// Returns true if χ of the protected bands is calculated once for all blocks of random vectors of
/// a job with error bars. With a static subspace or a graphical solution of the quasiparticle
/// equation it returns false, and the whole job is repeated for each block.
bool shares_blocks(const Deck& deck, const Calculation& run);

/// Returns true if a deck with error bars is solved once, because no target may repeat it and its
/// blocks share χ wherever random vectors replace states. The given states are then free after
/// pseudobands have replaced them.
bool solves_once(const Deck& deck);

/// Calculates the quasiparticle energies that a finished job would have with fewer random vectors,
/// or with other energies of windows (docs/theory/gw.md 9.3).
class BlockEnergies {
 public:
  virtual ~BlockEnergies() = default;
  /// Does the work that precedes the sums over bands.
  virtual void prepare() {}
  /// Sums Σ of the job in the sum over bands that also serves the blocks, and stores Σ in the
  /// job.
  /// @return false if Σ needs a sum of its own; the job is then unchanged
  virtual bool sum_sigma() { return false; }
  /// Calculates the energies without one block of random vectors in χ and Σ.
  /// @param block counted from 0
  virtual std::vector<Quasiparticle> without(int block) = 0;
  /// Calculates the energies with the windows of χ and Σ at their nodes.
  virtual std::vector<Quasiparticle> at_nodes() = 0;
};

/// Returns the name of a setting that forbids Σ to first order in changes of its poles, so that Σ
/// has to be summed anew for each block. The result is null if no setting does.
const char* obstacle_to_first_order(const Deck& deck, const Calculation& run);
/// Returns true if the deck allows the first order and no setting forbids it.
bool takes_first_order(const Deck& deck, const Calculation& run);

/// Makes the object that calculates the energies of blocks: FirstOrderBlocks if
/// takes_first_order(), else ExactBlocks. `deck`, `screening`, `run` and the objects of `context`
/// must outlive it.
/// @param screening  χ by groups as ScreeningStep sums it; null if ε⁻¹ stays that of the job
std::unique_ptr<BlockEnergies> block_energies(const Deck& deck, const ExchangeCorrelation& vxc,
                                              const StepContext& context,
                                              GroupedScreening* screening, Calculation& run);

/// Returns the weights of the groups of χ without one block of random vectors. The groups are the
/// protected bands and then the blocks.
/// @param block  the block that is left out, from 0
/// @param blocks  number of blocks
std::vector<double> weights_without(int block, int blocks);
/// Returns the bands of the group of χ with windows at their nodes, counted from 0. The first
/// order of Σ takes the vectors of the first block at 1/B of the pairs, because the same vectors
/// stand in χ without the nodes. Repeated sums take all vectors.
std::pair<int, int> bands_at_nodes(const Deck& deck, const Calculation& run);
/// Returns the weights of the groups of χ with windows at their nodes. The last group has vectors
/// with these energies: all of them, or those of the first block, which then count B times.
/// @param blocks  number of blocks
std::vector<double> weights_at_nodes(int blocks, bool of_first_block);

/// Calculates ε⁻¹, its poles and the total Σ anew for every block. χ is a weighted sum over
/// groups of bands, and the random vectors are those of the job.
class ExactBlocks final : public BlockEnergies {
 public:
  /// Prepares the sums of a job. The arguments are those of block_energies().
  ExactBlocks(const Deck& deck, const ExchangeCorrelation& vxc, const StepContext& context,
              GroupedScreening* screening, Calculation& run);
  std::vector<Quasiparticle> without(int block) override;
  std::vector<Quasiparticle> at_nodes() override;

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
