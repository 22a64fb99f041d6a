#pragma once

#include <memory>
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

/// True if a deck with error bars is solved once: no target may repeat it, and its blocks are
/// shared wherever random vectors replace states. The given states are not needed afterwards.
bool solves_once(const Deck& deck);

/// Quasiparticle energies that a finished job would have with fewer random vectors or with other
/// energies of windows (docs/theory/gw.md 9.3).
class BlockEnergies {
 public:
  virtual ~BlockEnergies() = default;
  /// Does the work that precedes the sums over bands.
  virtual void prepare() {}
  /// Sums Σ of the job in the sum over bands that serves the blocks, too, and sets it.
  /// @return false if Σ needs a sum of its own; nothing is then set
  virtual bool sum_sigma() { return false; }
  /// Calculates the energies without one block of vectors in χ and Σ, counted from 0.
  virtual std::vector<Quasiparticle> without(int block) = 0;
  /// Calculates the energies with the energies of windows at their nodes.
  virtual std::vector<Quasiparticle> at_nodes() = 0;
};

/// Returns the name of a setting of the deck that forbids the first order, so that Σ has to be
/// summed anew for each block; null if no setting does.
const char* obstacle_to_first_order(const Deck& deck, const Calculation& run);
/// True if the deck asks for the first order and nothing stands against it.
bool takes_first_order(const Deck& deck, const Calculation& run);

/// Makes the energies of blocks by the method of the deck, or by repeated sums where the first
/// order is not known.
/// @param screening  χ by groups as ScreeningStep sums it; null: ε⁻¹ is that of the job
std::unique_ptr<BlockEnergies> block_energies(const Deck& deck, const ExchangeCorrelation& vxc,
                                              const StepContext& context,
                                              GroupedScreening* screening, Calculation& run);

/// Returns the weights of the groups of χ without one block: the protected bands, then the blocks.
std::vector<double> weights_without(int block, int blocks);
/// Returns the weights of the groups of χ with windows at their nodes. The last group has all
/// vectors with these energies.
std::vector<double> weights_at_nodes(int blocks);

/// Calculates ε⁻¹, its poles and the total Σ anew for every block. χ is a weighted sum over
/// groups of bands, and the random vectors are those of the job.
class ExactBlocks final : public BlockEnergies {
 public:
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
