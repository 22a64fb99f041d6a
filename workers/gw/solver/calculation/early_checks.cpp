#include "workers/gw/solver/calculation/early_checks.hpp"

#include <cmath>

#include "workers/gw/solver/mean_field/empirical_structure.hpp"

namespace quasi::gw {

void require_room_of_crystal(const Deck& deck, const Workplace& place) {
  const double cutoff_ry = deck.epsilon.epsilon_cutoff_ry;
  if (!deck.mean_field.empirical || !deck.epsilon.stored.gamma.empty() || cutoff_ry <= 0.0 ||
      place.memory_limit_bytes <= 0)
    return;
  // Plane waves are counted by the volume of their sphere. χ, ε and the work space of its inverse
  // are three complex matrices.
  const double n_g = empirical_crystal(deck.mean_field.crystal).volume_bohr3 *
                     std::pow(cutoff_ry, 1.5) / (6.0 * kPi * kPi);
  Plan plan;
  plan.epsilon.epsilon_cutoff_ry = cutoff_ry;
  plan.least_memory_bytes = static_cast<std::int64_t>(48.0 * n_g * n_g);
  require_room(plan, place.memory_limit_bytes);
}

std::string leave_out_forgotten_states(const MeanField& field, Deck& deck) {
  const auto is_mapped = [](const Wavefunctions& waves) {
    return waves.waves[0].coefficients[0].is_mapped();
  };
  if (!is_mapped(field.waves) && !(field.shifted && is_mapped(*field.shifted))) return {};
  deck.self_test = false;
  deck.pseudobands = {};
  return "the states of WFN or WFNq exceed meanfield.state_memory_mib. Norms are checked; "
         "orthonormality, density, f_sum and pseudobands are left to the job, since a validation "
         "writes no file";
}

}  // namespace quasi::gw
