#include "workers/gw/solver/calculation/displacement_step.hpp"

#include <optional>
#include <string>

#include "workers/backend/stopwatch.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"
#include "workers/gw/solver/perturbation/response/pseudoband_response.hpp"
#include "workers/gw/solver/pseudoband_errors/block_energies.hpp"
#include "workers/gw/solver/pseudoband_errors/coupling_errors.hpp"

namespace quasi::gw {
namespace {

/// Holds the random vectors of the pseudobands of Σ, and ε⁻¹ without each block of them in
/// turn.
class RandomStates {
 public:
  RandomStates(GroupedScreening* groups, const Calculation& run)
      : factors_(vectors_of_filter(run.field, *run.pseudobands, PseudobandUse::kSelfEnergy)),
        random_{*run.pseudobands, factors_} {
    const int blocks = run.pseudobands->blocks;
    if (blocks < 2) return;
    for (int block = 0; block < blocks && groups != nullptr; ++block)
      epsilon_.push_back(groups->dielectric_matrices(weights_without(block, blocks)));
    for (int block = 0; block < blocks; ++block)
      random_.without.push_back(groups != nullptr ? &epsilon_[static_cast<std::size_t>(block)]
                                                  : &run.epsilon);
  }
  RandomStates(const RandomStates&) = delete;
  RandomStates& operator=(const RandomStates&) = delete;
  const FilteredPseudobands& of_sigma() const { return random_; }

 private:
  Wavefunctions factors_;
  std::vector<std::vector<DielectricMatrix>> epsilon_;  ///< ε⁻¹ without one block, [block][q]
  FilteredPseudobands random_;
};

/// Calculates the first orders in phonon modes from those in displacements.
void solve_modes(const Deck& deck, const DisplacedCrystal& displaced, const StepContext& context,
                 Calculation& run) {
  run.phonons = mode_elements(zero_point_modes(*deck.perturbation.modes, run.field.crystal()),
                              *run.displacements, run.field.waves);
  add_mode_errors(*run.displacements, run.field.waves, *run.phonons);
  // The shifts of energies are sums over pairs of eigenstates, which pseudobands are not.
  if (displaced.pseudobands == nullptr)
    run.phonons->shifts =
        zero_point_shifts(run.phonons->modes, perturbations_of(displaced, run.field.crystal()),
                          run.field, run.plan.sigma, *run.displacements, context.team.first());
}

/// Returns the reason why a job has no ∂V_xc. The text is empty if it has ∂V_xc.
std::string why_no_vxc(const Deck& deck, const std::vector<FileDisplacement>& files,
                       const MeanField& field) {
  if (!files.empty())
    return files.front().has_vxc ? "" : "the folders of perturbation.displaced have no VXC";
  if (!deck.mean_field.local_density)
    return "the built-in crystal has no V_xc; meanfield.vxc = \"lda\" gives it that of its density";
  if (field.n_spinor() == 2) return "the first order of the density of spinors is not calculated";
  if (deck.pseudobands.wanted())
    return "the first order of the density is a sum over all states, which pseudobands replace";
  return "";
}

}  // namespace

void solve_displacements(const Deck& deck, GroupedScreening* groups, const StepContext& context,
                         Calculation& run) {
  const Stopwatch clock;
  const auto note = [&](const std::string& text) {
    run.plan.notes.push_back(text);
    context.progress.log(text);
  };
  const PerturbationRequest request = request_on_grid(deck.perturbation, run.field);
  std::vector<FileDisplacement> files;
  if (!request.folders.empty()) files = file_displacements(request.folders, run.field);
  const std::string absent = why_no_vxc(deck, files, run.field);
  if (!absent.empty())
    note("g^GW = g - <dV_xc> + <dSigma> is not available: " + absent +
         ". The job writes g and <dSigma> apart");
  std::optional<RandomStates> random;
  if (run.pseudobands) random.emplace(groups, run);
  const DisplacedCrystal displaced{
      deck.mean_field.crystal, request, files.empty() ? nullptr : &files,
      random ? &random->of_sigma() : nullptr, deck.mean_field.local_density && absent.empty()};
  if (deck.perturbation.at_gamma)
    run.displacements =
        displacement_elements(displaced, run.field, run.epsilon, run.plan.sigma, context);
  if (run.displacements && deck.perturbation.modes) {
    if (random)
      note(
          "zero-point shifts are not available with pseudobands: they are sums over pairs of "
          "eigenstates");
    solve_modes(deck, displaced, context, run);
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
