#include "workers/gw/solver/calculation/displacement_step.hpp"

#include "workers/backend/stopwatch.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"

namespace quasi::gw {

void solve_displacements(const Deck& deck, const StepContext& context, Calculation& run) {
  const Stopwatch clock;
  const auto note = [&](const char* text) {
    run.plan.notes.push_back(text);
    context.progress.log(text);
  };
  if (deck.perturbation.folders.empty())
    note(
        "g^GW = g - <dV_xc> + <dSigma> is not available: the built-in crystals have no V_xc. The "
        "job "
        "writes g and <dSigma> apart");
  const PerturbationRequest request = request_on_grid(deck.perturbation, run.field);
  std::vector<FileDisplacement> files;
  if (!request.folders.empty()) files = file_displacements(request.folders, run.field);
  if (!files.empty() && !files.front().has_vxc)
    note(
        "g^GW = g - <dV_xc> + <dSigma> is not available: the folders of perturbation.displaced "
        "have no VXC. The job writes g and <dSigma> apart");
  const DisplacedCrystal displaced{deck.mean_field.crystal, request,
                                   files.empty() ? nullptr : &files};
  if (deck.perturbation.at_gamma)
    run.displacements =
        displacement_elements(displaced, run.field, run.epsilon, run.plan.sigma, context);
  if (run.displacements && deck.perturbation.modes) {
    run.phonons = mode_elements(zero_point_modes(*deck.perturbation.modes, run.field.crystal()),
                                *run.displacements, run.field.waves);
    run.phonons->shifts =
        zero_point_shifts(run.phonons->modes, perturbations_of(displaced, run.field.crystal()),
                          run.field, run.plan.sigma, *run.displacements, context.team.first());
  }
  run.wave_vectors =
      wave_vector_elements(displaced, run.field, run.epsilon, run.plan.sigma, context);
  run.seconds["perturbation"] = clock.seconds();
  if (run.displacements)
    for (const auto& [step, seconds] : run.displacements->seconds)
      run.seconds["perturbation_" + step] += seconds;
  for (const WaveVectorElements& at_q : run.wave_vectors)
    for (const auto& [step, seconds] : at_q.elements.seconds)
      run.seconds["perturbation_" + step] += seconds;
}

}  // namespace quasi::gw
