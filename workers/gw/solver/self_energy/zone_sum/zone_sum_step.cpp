#include "workers/gw/solver/self_energy/zone_sum/zone_sum_step.hpp"

#include "workers/gw/solver/calculation/phase_clock.hpp"
#include "workers/gw/solver/self_energy/zone_sum/sampled_zero.hpp"
#include "workers/gw/solver/self_energy/zone_sum/zone_sum_change.hpp"

namespace quasi::gw {

void complete_zone_sum(const Deck& deck, const std::vector<DielectricMatrix>& samples,
                       const StepContext& context, Calculation& run) {
  if (deck.pseudobands.serves_errors()) return;
  const PhaseClock clock(&run.seconds["zone_sum_change"]);
  const SigmaOptions& options = run.plan.sigma;
  const bool by_grid = deck.sigma.outer.kind != OuterLoop::kNone || deck.sigma.wants_matrix();
  if (!by_grid && samples_replace_zero(run.field, samples, options.method)) {
    SamplingErrors errors =
        replace_zero_by_samples(run.field, run.epsilon, samples, options, context, run.sigma);
    run.subsampling_change_ev = std::move(errors.half_change_ev);
    run.zone_sum_change_ev = std::move(errors.grid_change_ev);
    return;
  }
  if (!samples.empty())
    run.plan.notes.push_back(
        "coulomb.subsampling takes the head of W from its samples, and all other elements from "
        "q₀: the symmetry of the crystal, an outer loop, the full matrix of Σ or the imaginary "
        "axis does not allow Σ at the samples");
  if (deck.study.within) return;
  run.zone_sum_change_ev =
      zone_sum_change_ev(run.field, run.epsilon, options, context.coulomb, context.team.first());
  run.subsampling_change_ev =
      subsampling_change_ev(run.field, run.epsilon, options, context.coulomb);
}

}  // namespace quasi::gw
