#include "workers/gw/solver/calculation/displacement_step.hpp"

#include "workers/backend/stopwatch.hpp"

namespace quasi::gw {

void solve_displacements(const Deck& deck, const StepContext& context, Calculation& run) {
  const Stopwatch clock;
  const auto note = [&](const char* text) {
    run.plan.notes.push_back(text);
    context.progress.log(text);
  };
  note(
      "g^GW = g - <dV_xc> + <dSigma> is not available: the built-in crystals have no V_xc. The job "
      "writes g and <dSigma> apart");
  run.displacements = displacement_elements({deck.mean_field.crystal, deck.perturbation}, run.field,
                                            run.epsilon, run.plan.sigma, context);
  if (deck.perturbation.modes) {
    run.phonons = mode_elements(zero_point_modes(*deck.perturbation.modes, run.field.crystal()),
                                *run.displacements, run.field.waves);
    run.phonons->shifts = zero_point_shifts(run.phonons->modes, deck.mean_field.crystal, run.field,
                                            run.plan.sigma, context.team.first());
  }
  run.seconds["perturbation"] = clock.seconds();
  for (const auto& [step, seconds] : run.displacements->seconds)
    run.seconds["perturbation_" + step] = seconds;
}

}  // namespace quasi::gw
