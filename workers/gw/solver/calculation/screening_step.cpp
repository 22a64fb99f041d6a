#include "workers/gw/solver/calculation/screening_step.hpp"

#include <omp.h>

#include <algorithm>
#include <string>
#include <utility>

#include "workers/gw/solver/calculation/phase_clock.hpp"
#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
#include "workers/gw/solver/screening/coulomb/head_samples.hpp"

namespace quasi::gw {

ScreeningChecks::ScreeningChecks(const std::vector<DielectricMatrix>& epsilon)
    : epsilon_(epsilon), threads_(std::max(1, omp_get_max_threads() / 2)) {}

void ScreeningChecks::start() {
  if (checks_.valid()) return;
  checks_ = std::async(std::launch::async, [this] {
    const PhaseClock clock(&seconds_);
    omp_set_num_threads(threads_);
    return check_screening(epsilon_);
  });
}

std::vector<SelfCheck> ScreeningChecks::take() {
  start();
  return checks_.get();
}

void ScreeningStep::sum_by_groups(const Deck& deck, const StepContext& context, Calculation& run) {
  const PseudobandPlan& p = *run.pseudobands;
  std::vector<EmptyBands> groups{{"protected", {0, p.kept}}};
  for (int block = 0; block < p.blocks; ++block) {
    const auto [begin, end] = p.bands_of_block(block);
    groups.push_back({"block-" + std::to_string(block + 1), {begin, end}, false});
  }
  groups_ = std::make_unique<GroupedScreening>(run.field, run.plan.epsilon, context, &profile_);
  groups_->add(groups);
  run.epsilon = groups_->dielectric_matrices(std::vector<double>(groups.size(), 1.0));
  if (deck.pseudobands.windows != WindowForm::kSplines) return;
  const PhaseClock clock(&run.seconds["pseudoband_errors"]);
  Wavefunctions& waves = run.field.waves;
  std::vector<double> nodes = energies_at_nodes(waves, p, PseudobandUse::kScreening);
  waves.energy_ry.swap(nodes);
  const auto [begin, end] = bands_at_nodes(deck, run);
  groups_->add({{"nodes", {begin, end}}});
  waves.energy_ry.swap(nodes);
}

ScreeningStep::ScreeningStep(const Deck& deck, const StepContext& context, Calculation& run) {
  {
    const PhaseClock clock(&run.seconds["epsilon"]);
    if (run.plan.stored)
      run.epsilon = read_epsilon(deck.epsilon.stored, run.field, context.coulomb);
    else if (shares_blocks(deck, run))
      sum_by_groups(deck, context, run);
    else
      run.epsilon = dielectric_matrices(run.field, screening_points(run.field), run.plan.epsilon,
                                        context, &profile_);
    for (DielectricMatrix& m : run.epsilon)
      if (m.at_gamma && context.coulomb.options().subsampling > 0) {
        SlabSamples found = slab_samples(run.field, run.plan.epsilon, context);
        m.head_samples = std::move(found.heads);
        samples_ = std::move(found.matrices);
      }
  }
  // The group of the window width belongs to the phase of the error bars.
  if (const auto errors = run.seconds.find("pseudoband_errors"); errors != run.seconds.end())
    run.seconds["epsilon"] -= errors->second;
  for (const DielectricMatrix& m : run.epsilon)
    if (m.at_gamma) context.coulomb.require_direction(m.q);
  for (const auto& [step, value] : profile_.seconds()) run.seconds["epsilon_" + step] = value;
  if (profile_.pairs() > 0)
    context.progress.log("static polarizability: " + std::to_string(profile_.pairs()) +
                         " pairs of bands, " + std::to_string(profile_.real_pairs()) +
                         " of them in real arithmetic");
}

}  // namespace quasi::gw
