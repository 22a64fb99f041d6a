#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>

#include "workers/gw/solver/calculation/phase_clock.hpp"

namespace quasi::gw {
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
  // The poles, ε̃⁻¹ and a copy in which it is inverted, and the change.
  constexpr std::int64_t kBytes = 24 + 16 + 16 + 6;
  const std::int64_t n = poles.model.n;
  PolesOnDevice& here = loaded_.at(&kernels);
  if (std::max(options_.memory_limit_bytes, options_.memory_budget_bytes) < kBytes * n * n)
    here = {};
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
  for (const DielectricMatrix& epsilon : run_.epsilon) all.push_back(poles_of(epsilon));
  if (screening_ == nullptr) return all;
  const int blocks = run_.pseudobands->blocks;
  std::vector<std::vector<double>> weights;
  for (int block = 0; block < blocks; ++block) weights.push_back(weights_without(block, blocks));
  if (has_nodes_) weights.push_back(weights_at_nodes(blocks));
  for (ChangingPoles& at : all) at.changes.resize(weights.size());
  context_.progress.log("screening without each of " + std::to_string(blocks) + " blocks");
  std::vector<std::optional<ScreenedElements>> elements;
  for (const ChangingPoles& at : all)
    elements.push_back(screened_elements_at(run_.field, at.at, options_, context_.coulomb));
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

void FirstOrderBlocks::prepare() {
  if (ready_) return;
  ready_ = true;
  const PseudobandPlan& plan = *run_.pseudobands;
  context_.checkpoint.enter("first-order/");
  const std::vector<ChangingPoles> poles = changing_poles();
  const PhaseClock clock(&run_.seconds["pseudoband_errors_sigma"]);
  const ResponseContext context{context_, loaded_};
  // The nodes of windows are those of every spin and k.
  std::vector<double> nodes;
  if (has_nodes_) {
    nodes = energies_at_nodes(run_.field.waves, plan, PseudobandUse::kSelfEnergy);
    nodes.resize(static_cast<std::size_t>(plan.bands()));
  }
  of_blocks_ = sums_of_blocks(run_.field, poles, plan, options_, nodes, context);
  const std::size_t n_changes = poles.front().changes.size();
  if (n_changes > 0)
    by_poles_ = sigma_responses(run_.field, poles, n_changes, options_, context);
  else
    by_poles_.assign(static_cast<std::size_t>(plan.blocks) + 1, no_change(run_.field, options_));
  context_.checkpoint.enter("");
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
  prepare();
  const auto left_out = static_cast<std::size_t>(block);
  SigmaChanges change = by_poles_.at(left_out);
  for (std::size_t other = 0; other < of_blocks_.own.size(); ++other)
    for (std::size_t i = 0; i < change.size(); ++i)
      change[i].add(
          other == left_out ? -1.0 : 1.0 / (static_cast<double>(of_blocks_.own.size()) - 1.0),
          of_blocks_.own[other][i]);
  return with_change(change);
}

std::vector<Quasiparticle> FirstOrderBlocks::at_nodes() {
  prepare();
  SigmaChanges change = by_poles_.at(of_blocks_.own.size());
  for (std::size_t i = 0; i < change.size(); ++i) change[i].add(1.0, of_blocks_.to_nodes[i]);
  return with_change(change);
}

}  // namespace quasi::gw
