#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/gw/solver/calculation/phase_clock.hpp"
#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"

namespace quasi::gw {
namespace {

/// Copies rows [begin, end) of `from` times a factor into `to`, from row `at` on; [rows][n].
struct Rows {
  std::int64_t begin = 0, end = 0;
};
void copy_rows(const std::vector<Cplx>& from, const Rows& rows, std::int64_t n, double factor,
               Cplx* to) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = rows.begin * n; i < rows.end * n; ++i)
    to[i - rows.begin * n] = factor * from[static_cast<std::size_t>(i)];
}

/// Returns the number of coefficients of one state.
std::int64_t row_of(const Wavefunctions& waves, const KPointWaves& at) {
  return static_cast<std::int64_t>(at.g.size()) * waves.header.n_spinor;
}

/// The random vectors of a field, which the destructor puts back.
class RandomVectors {
 public:
  RandomVectors(MeanField& field, const PseudobandPlan& plan)
      : field_(field), plan_(plan), complement_(field.complement) {
    for (const KPointWaves& at : field.waves.waves)
      for (const std::vector<Cplx>& states : at.coefficients)
        kept_.emplace_back(
            states.begin() + static_cast<std::ptrdiff_t>(plan.kept) * row_of(field.waves, at),
            states.end());
  }
  ~RandomVectors() {
    for_each_list([](const std::vector<Cplx>& kept, std::int64_t n, Cplx* to) {
      copy_rows(kept, {0, static_cast<std::int64_t>(kept.size()) / n}, n, 1.0, to);
    });
    field_.complement = std::move(complement_);
  }
  RandomVectors(const RandomVectors&) = delete;
  RandomVectors& operator=(const RandomVectors&) = delete;

  /// Leaves the vectors of one block out. The others follow the protected bands without a gap, and
  /// their squares grow by B/(B − 1).
  void leave_out(int block) {
    const double factor = std::sqrt(plan_.blocks / (plan_.blocks - 1.0));
    for_each_list([&](const std::vector<Cplx>& kept, std::int64_t n, Cplx* to) {
      copy_without(kept, n, block, factor, to);
    });
    if (!complement_) return;
    for (std::size_t ik = 0; ik < complement_->waves.size(); ++ik)
      for (std::size_t spin = 0; spin < complement_->waves[ik].coefficients.size(); ++spin) {
        const KPointWaves& from = complement_->waves[ik];
        copy_without(from.coefficients[spin], row_of(*complement_, from), block, factor,
                     field_.complement->waves[ik].coefficients[spin].data());
      }
    field_.complement->n_bands = complement_->n_bands / plan_.blocks * (plan_.blocks - 1);
  }

 private:
  /// Calls visit(kept, row, first) for every spin and k. `kept` has the kept vectors, `row` is the
  /// number of coefficients of each, and `first` points to the first vector in the field.
  template <typename Visit>
  void for_each_list(const Visit& visit) {
    std::size_t list = 0;
    for (KPointWaves& at : field_.waves.waves)
      for (std::vector<Cplx>& states : at.coefficients)
        visit(kept_[list++], row_of(field_.waves, at),
              states.data() + plan_.kept * row_of(field_.waves, at));
  }
  void copy_without(const std::vector<Cplx>& from, std::int64_t n, int block, double factor,
                    Cplx* to) const {
    const std::int64_t all = static_cast<std::int64_t>(from.size()) / n, each = all / plan_.blocks;
    copy_rows(from, {0, block * each}, n, factor, to);
    copy_rows(from, {(block + 1) * each, all}, n, factor, to + block * each * n);
  }

  MeanField& field_;
  const PseudobandPlan& plan_;
  /// Kept vectors of each k and spin, [vectors][n_spinor][n_pw].
  std::vector<std::vector<Cplx>> kept_;
  std::optional<Wavefunctions> complement_;
};

}  // namespace

bool shares_blocks(const Deck& deck, const Calculation& run) {
  return run.pseudobands && deck.pseudobands.blocks > 0 && !deck.pseudobands.serves_errors() &&
         !run.pseudobands->keeps_all() && deck.sigma.solution == Solution::kLinearised &&
         !(run.plan.epsilon.subspace.wanted() && run.plan.epsilon.frequencies_ry.size() > 1);
}

bool solves_once(const Deck& deck) {
  return deck.pseudobands.target_error_ev <= 0.0 && !deck.pseudobands.serves_errors() &&
         !deck.stop_after_epsilon && deck.sigma.solution == Solution::kLinearised &&
         !deck.epsilon.subspace.wanted();
}

const char* obstacle_to_first_order(const Deck& deck, const Calculation& run) {
  const SigmaOptions& options = run.plan.sigma;
  if (!uses_plasmon_poles(options.method)) return "sigma.method without plasmon poles";
  if (options.method == SigmaMethod::kGodbyNeeds &&
      deck.pseudobands.block_sums == BlockSums::kAutomatic)
    return "the poles of Godby and Needs";
  if (options.invalid == InvalidMode::kImaginary) return "sigma.invalid_modes = \"imaginary\"";
  if (deck.coulomb.wing_rule == WingRule::kListedPoint) return "wings by q-point";
  if (options.exact_static_ch) return "sigma.static_remainder";
  if (run.plan.spectrum_offset != 1) return "dΣ/dE by differences";
  return nullptr;
}

bool takes_first_order(const Deck& deck, const Calculation& run) {
  return deck.pseudobands.block_sums != BlockSums::kExact &&
         obstacle_to_first_order(deck, run) == nullptr;
}

std::unique_ptr<BlockEnergies> block_energies(const Deck& deck, const ExchangeCorrelation& vxc,
                                              const StepContext& context,
                                              GroupedScreening* screening, Calculation& run) {
  if (takes_first_order(deck, run))
    return std::make_unique<FirstOrderBlocks>(deck, vxc, context, screening, run);
  return std::make_unique<ExactBlocks>(deck, vxc, context, screening, run);
}

std::vector<double> weights_without(int block, int blocks) {
  std::vector<double> weights(static_cast<std::size_t>(blocks) + 1, blocks / (blocks - 1.0));
  weights[0] = 1.0;
  weights[static_cast<std::size_t>(block) + 1] = 0.0;
  return weights;
}

std::pair<int, int> bands_at_nodes(const Deck& deck, const Calculation& run) {
  const PseudobandPlan& p = *run.pseudobands;
  return takes_first_order(deck, run) ? p.bands_of_block(0) : std::pair(p.kept, p.bands());
}

std::vector<double> weights_at_nodes(int blocks, bool of_first_block) {
  std::vector<double> weights(static_cast<std::size_t>(blocks) + 2, of_first_block ? 1.0 : 0.0);
  weights.front() = weights.back() = 1.0;
  if (of_first_block) {
    weights[1] = 1.0 - blocks;
    weights.back() = blocks;
  }
  return weights;
}

ExactBlocks::ExactBlocks(const Deck& deck, const ExchangeCorrelation& vxc,
                         const StepContext& context, GroupedScreening* screening, Calculation& run)
    : deck_(deck),
      vxc_ev_(vxc.diagonal_ev()),
      context_(context),
      screening_(screening),
      run_(run) {}

std::vector<Quasiparticle> ExactBlocks::solved(const std::string& scope,
                                               const std::vector<double>& weights, int bands) {
  std::vector<DielectricMatrix> made;
  {
    const PhaseClock clock(&run_.seconds["pseudoband_errors_epsilon"]);
    if (screening_ != nullptr) made = screening_->dielectric_matrices(weights);
  }
  const std::vector<DielectricMatrix>& epsilon = screening_ != nullptr ? made : run_.epsilon;
  SigmaOptions options = run_.plan.sigma;
  options.bands = bands;
  options.only_total = uses_plasmon_poles(options.method);
  options.offsets_ry.resize(run_.plan.spectrum_offset);
  // Exchange holds occupied bands and the bare interaction, which no block changes. Without V_xc
  // the energies are those of Σ, and no slope is needed.
  options.exchange = false;
  options.slope = options.slope && !vxc_ev_.empty();
  const PhaseClock clock(&run_.seconds["pseudoband_errors_sigma"]);
  context_.checkpoint.enter(scope);
  std::vector<SelfEnergyAtK> sums = self_energy(run_.field, epsilon, options, context_, nullptr);
  context_.checkpoint.enter("");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].x_ry = run_.sigma[i].x_ry;
    if (!options.slope) sums[i].slope = run_.sigma[i].slope;
  }
  if (deck_.sigma.method == SigmaMethod::kCohsex && deck_.sigma.exact_ch)
    for (SelfEnergyAtK& sum : sums) sum.ch_ry[0] = sum.ch_exact_ry;
  return quasiparticles(run_.field, sums, vxc_ev_, options, run_.plan.derivative,
                        deck_.sigma.remainder);
}

std::vector<Quasiparticle> ExactBlocks::without(int block) {
  const PseudobandPlan& p = *run_.pseudobands;
  RandomVectors vectors(run_.field, p);
  vectors.leave_out(block);
  const auto [begin, end] = p.bands_of_block(block);
  return solved("without-block-" + std::to_string(block + 1) + "/",
                weights_without(block, p.blocks), p.bands() - (end - begin));
}

std::vector<Quasiparticle> ExactBlocks::at_nodes() {
  const PseudobandPlan& p = *run_.pseudobands;
  Wavefunctions& waves = run_.field.waves;
  std::vector<double> nodes = energies_at_nodes(waves, p, PseudobandUse::kSelfEnergy);
  waves.energy_ry.swap(nodes);
  std::vector<Quasiparticle> list =
      solved("at-nodes/", weights_at_nodes(p.blocks, false), p.bands());
  waves.energy_ry.swap(nodes);
  return list;
}

}  // namespace quasi::gw
