#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/solver/calculation/phase_clock.hpp"

namespace quasi::gw {
namespace {

std::int64_t room_of_device(const SigmaOptions& options) {
  return std::max(options.memory_limit_bytes, options.memory_budget_bytes);
}

}  // namespace

std::int64_t bytes_of_change(std::int64_t n_g, std::int64_t n_changes, bool real) {
  // A complex ε̃ is inverted with a copy beside it, a real one in place of χ.
  const std::int64_t of_inverse = real ? 8 : 16 + 16, of_change = real ? 4 : 6;
  return bytes_of_model(n_g, real) + (of_inverse + of_change * n_changes) * n_g * n_g;
}

bool devices_keep_changes(std::int64_t n_g, std::int64_t n_changes, bool real,
                          const SigmaOptions& options) {
  return bytes_of_change(n_g, n_changes, real) <= room_of_device(options);
}

FirstOrderBlocks::FirstOrderBlocks(const Deck& deck, const ExchangeCorrelation& vxc,
                                   const StepContext& context, GroupedScreening* screening,
                                   Calculation& run)
    : vxc_ev_(vxc.diagonal_ev()),
      context_(context),
      screening_(screening),
      run_(run),
      options_(run.plan.sigma),
      has_nodes_(deck.pseudobands.windows == WindowForm::kSplines) {
  options_.only_total = true;
  options_.exchange = false;
  options_.offsets_ry = {0.0};
  // Without V_xc the energies are those of Σ, and no slope is needed.
  options_.slope = options_.slope && !vxc_ev_.empty();
  for (GwKernels* member : context_.team.members()) loaded_[member];
}

PoleChange FirstOrderBlocks::change_on_device(const ChangingPoles& poles, std::size_t iq,
                                              const std::vector<double>& weights,
                                              ScreenedElements elements, GwKernels& kernels) {
  const std::int64_t n = poles.model.n;
  PolesOnDevice& here = loaded_.at(&kernels);
  if (room_of_device(options_) < bytes_of_change(n, 1, poles.model.real)) here = {};
  const auto inverse = screening_->inverse(weights, iq, kernels);
  if (elements.at_zero)
    set_limit_of_small_q(run_.field, context_.coulomb, inverse->rows(elements.n_heads), elements);
  here.take(poles, iq, options_.rules, kernels);
  return kernels.pole_sums().change_of_poles(*here.model, *inverse, elements);
}

std::vector<ChangingPoles> FirstOrderBlocks::changing_poles() {
  const PhaseClock clock(&run_.seconds["pseudoband_errors_epsilon"]);
  const auto frequencies = options_.method == SigmaMethod::kGodbyNeeds
                               ? std::vector<std::size_t>{0, 1}
                               : std::vector<std::size_t>{0};
  const auto poles_of = [&](const DielectricMatrix& epsilon) {
    ChangingPoles poles{.at = screening_at(run_.field, epsilon, options_.screened_cutoff_ry,
                                           context_.coulomb, frequencies),
                        .model = {},
                        .changes = {}};
    poles.model = plasmon_poles(run_.field, poles.at, options_, context_.coulomb,
                                wing_factors(poles.at.epsilon));
    poles.at.epsilon.inverse.clear();
    return poles;
  };
  std::vector<ChangingPoles> all;
  {
    const PhaseClock of_poles(&run_.seconds["pseudoband_errors_poles"]);
    for (const DielectricMatrix& epsilon : run_.epsilon) all.push_back(poles_of(epsilon));
  }
  if (screening_ == nullptr) return all;
  const int blocks = run_.pseudobands->blocks;
  std::vector<std::vector<double>> weights;
  for (int block = 0; block < blocks; ++block) weights.push_back(weights_without(block, blocks));
  if (has_nodes_) weights.push_back(weights_at_nodes(blocks, true));
  for (ChangingPoles& at : all) at.changes.resize(weights.size());
  context_.progress.log("screening without each of " + std::to_string(blocks) + " blocks");
  std::int64_t largest = 0;
  bool real = true;
  for (const ChangingPoles& at : all) {
    largest = std::max(largest, at.model.n);
    real = real && at.model.real;
  }
  if (screening_->is_sliced()) {
    // An inversion in slices uses all devices, so that the inversions follow one another.
    for (std::size_t iq = 0; iq < all.size(); ++iq)
      for (std::size_t c = 0; c < weights.size(); ++c) {
        const DielectricMatrix changed = screening_->dielectric_matrix_in_slices(weights[c], iq);
        all[iq].changes[c] = change_of(all[iq].model, poles_of(changed).model);
      }
    return all;
  }
  const bool kept = devices_keep_changes(
      largest, static_cast<std::int64_t>(all.size() * weights.size()), real, options_);
  std::vector<std::optional<ScreenedElements>> elements;
  for (const ChangingPoles& at : all) {
    elements.push_back(screened_elements_at(run_.field, at.at, options_, context_.coulomb));
    if (elements.back()) elements.back()->kept = kept;
  }
  // Two devices at a time where a change passes through matrices in the memory of the host.
  std::counting_semaphore<> places(kChangesAtATime);
  const auto change = [&](std::int64_t task, GwKernels& kernels) {
    const auto iq = static_cast<std::size_t>(task) / weights.size(),
               c = static_cast<std::size_t>(task) % weights.size();
    if (elements[iq]) {
      all[iq].changes[c] = change_on_device(all[iq], iq, weights[c], *elements[iq], kernels);
      return;
    }
    places.acquire();
    const auto leave = [&places](void*) { places.release(); };
    const std::unique_ptr<void, decltype(leave)> place(&places, leave);
    const DielectricMatrix changed = screening_->dielectric_matrix(weights[c], iq, kernels);
    all[iq].changes[c] = change_of(all[iq].model, poles_of(changed).model);
  };
  context_.team.run_here(static_cast<std::int64_t>(all.size() * weights.size()), change);
  return all;
}

BandSegments FirstOrderBlocks::segments() const {
  const PseudobandPlan& plan = *run_.pseudobands;
  BandSegments segments{.end = {plan.kept}, .other_ry = {}};
  for (int block = 0; block < plan.blocks; ++block)
    segments.end.push_back(plan.bands_of_block(block).second);
  if (has_nodes_) {
    // The nodes of windows are those of every spin and k.
    segments.other_ry = energies_at_nodes(run_.field.waves, plan, PseudobandUse::kSelfEnergy);
    segments.other_ry.resize(static_cast<std::size_t>(plan.bands()));
    std::fill_n(segments.other_ry.begin(), plan.kept, std::nan(""));
  }
  if (options_.closed_sum_x_ry) segments.of_complement = plan.blocks;
  return segments;
}

void FirstOrderBlocks::take_blocks(const std::vector<SigmaOfModel>& own) {
  const auto blocks = static_cast<std::size_t>(run_.pseudobands->blocks);
  to_nodes_ = no_change(run_.field, options_);
  of_blocks_.assign(blocks, to_nodes_);
  for (std::size_t block = 0; block < blocks; ++block)
    for (std::size_t i = 0; i < own.size(); ++i) {
      SigmaChange &of = of_blocks_[block][i], &moved = to_nodes_[i];
      const std::size_t n_l = of.total_ry.size();
      const auto sum = [&](OwnSum which, std::size_t l) { return own[i].sum(block + 1, which, l); };
      for (std::size_t l = 0; l < n_l; ++l) {
        of.total_ry[l] = sum(OwnSum::kTotal, l) - sum(OwnSum::kClosed, l);
        if (options_.closed_sum_x_ry) of.total_ry[l] -= own[i].of_complement[block * n_l + l];
        if (has_nodes_) moved.total_ry[l] += sum(OwnSum::kSecond, l) - sum(OwnSum::kTotal, l);
        if (!options_.slope) continue;
        of.slope[l] = sum(OwnSum::kSlope, l);
        if (has_nodes_) moved.slope[l] += sum(OwnSum::kSecondSlope, l) - sum(OwnSum::kSlope, l);
      }
    }
}

void FirstOrderBlocks::prepare() {
  if (!poles_.empty()) return;
  context_.checkpoint.enter("first-order/");
  poles_ = changing_poles();
  context_.checkpoint.enter("");
}

std::vector<SigmaOfModel> FirstOrderBlocks::sum_bands(bool screened_exchange) {
  prepare();
  ready_ = true;
  context_.checkpoint.enter("first-order/");
  const std::size_t n_changes = poles_.front().changes.size();
  BandSegments wanted = segments();
  wanted.screened_exchange = screened_exchange;
  StepTimes times;
  SigmaResponses found =
      sigma_responses(run_.field, poles_, n_changes, options_, wanted, {context_, loaded_, &times});
  for (const auto& [step, seconds] : times.seconds()) run_.statistics.seconds[step] += seconds;
  context_.checkpoint.enter("");
  take_blocks(found.own);
  by_poles_ = std::move(found.changes);
  if (n_changes == 0)
    by_poles_.assign(static_cast<std::size_t>(run_.pseudobands->blocks) + 1,
                     no_change(run_.field, options_));
  poles_.clear();
  for (auto& [member, here] : loaded_) here = {};
  return std::move(found.own);
}

bool FirstOrderBlocks::shares_sum_with_sigma() const {
  const SigmaOptions& options = run_.plan.sigma;
  if (options.offsets_ry != std::vector<double>{0.0} || options.only_total ||
      poles_.front().changes.empty())
    return false;
  // The sums of the response have real parts alone, as Σ of Hermitian poles has.
  return std::all_of(poles_.begin(), poles_.end(), [](const ChangingPoles& at) {
    return is_hermitian(at.model.view()) && at.model.imaginary.empty();
  });
}

bool FirstOrderBlocks::sum_sigma() {
  prepare();
  if (!shares_sum_with_sigma()) return false;
  SigmaOptions exchange = run_.plan.sigma;
  exchange.correlation = false;
  context_.checkpoint.enter("first-order/exchange/");
  SigmaStatistics of_exchange;
  run_.sigma = self_energy(run_.field, run_.epsilon, exchange, context_, &of_exchange);
  run_.statistics.seconds = std::move(of_exchange.seconds);
  context_.checkpoint.enter("");
  for (const ChangingPoles& at : poles_) {
    run_.statistics.elements += at.model.n * at.model.n;
    run_.statistics.skipped += at.model.skipped;
    run_.statistics.invalid += at.model.invalid;
  }
  const std::vector<SigmaOfModel> own = sum_bands(true);
  const std::size_t n_segments = static_cast<std::size_t>(run_.pseudobands->blocks) + 1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    SelfEnergyAtK& sigma = run_.sigma[i];
    for (std::size_t l = 0; l < sigma.x_ry.size(); ++l) {
      // The bands of blocks are empty.
      const double sx = own[i].sum(0, OwnSum::kSecond, l);
      double total = 0.0, closed = own[i].known[l];
      for (std::size_t segment = 0; segment < n_segments; ++segment) {
        total += own[i].sum(segment, OwnSum::kTotal, l);
        closed -= own[i].sum(segment, OwnSum::kClosed, l);
        if (!sigma.slope.empty()) sigma.slope[l] += own[i].sum(segment, OwnSum::kSlope, l);
      }
      for (std::size_t at = l; at < own[i].of_complement.size(); at += sigma.x_ry.size())
        closed -= own[i].of_complement[at];
      sigma.sx_ry[0][l] = sx;
      sigma.ch_ry[0][l] = total - sx + closed;
      if (!sigma.closed_sum_ry.empty()) sigma.closed_sum_ry[l] = closed;
    }
  }
  return true;
}

std::vector<Quasiparticle> FirstOrderBlocks::with_change(const SigmaChanges& change) const {
  std::vector<SelfEnergyAtK> sums = run_.sigma;
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (std::size_t l = 0; l < change[i].total_ry.size(); ++l) {
      sums[i].ch_ry[0][l] += change[i].total_ry[l];
      if (!change[i].slope.empty()) sums[i].slope[l] += change[i].slope[l];
    }
  return quasiparticles(run_.field, sums, vxc_ev_, run_.plan.sigma, run_.plan.derivative, false);
}

std::vector<Quasiparticle> FirstOrderBlocks::without(int block) {
  if (!ready_) sum_bands(false);
  const auto left_out = static_cast<std::size_t>(block);
  SigmaChanges change = by_poles_.at(left_out);
  for (std::size_t other = 0; other < of_blocks_.size(); ++other)
    for (std::size_t i = 0; i < change.size(); ++i)
      change[i].add(other == left_out ? -1.0 : 1.0 / (static_cast<double>(of_blocks_.size()) - 1.0),
                    of_blocks_[other][i]);
  return with_change(change);
}

std::vector<Quasiparticle> FirstOrderBlocks::at_nodes() {
  if (!ready_) sum_bands(false);
  SigmaChanges change = by_poles_.at(of_blocks_.size());
  for (std::size_t i = 0; i < change.size(); ++i) change[i].add(1.0, to_nodes_[i]);
  return with_change(change);
}

}  // namespace quasi::gw
