#include "workers/gw/solver/calculation/early_checks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "workers/backend/error.hpp"
#include "workers/gw/input/slices/deck_slices.hpp"
#include "workers/gw/model/column_slices.hpp"
#include "workers/gw/solver/calculation/slices/slices_plan.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_memory.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// True if states of a crystal may be real. It then has inversion about the origin, and every k is
/// its own inverse.
bool may_be_real(const EmpiricalCrystal& crystal) {
  const auto is_zero = [](double x) { return x == 0.0; };
  const auto& shift = crystal.origin_shift;
  if (crystal.disorder_bohr > 0.0 || crystal.couples_spins() ||
      !std::all_of(shift.begin(), shift.end(), is_zero))
    return false;
  if (std::any_of(crystal.k_grid.begin(), crystal.k_grid.end(), [](int n) { return n > 2; }))
    return false;
  if (well_model(crystal.name) != nullptr) return true;
  const auto& odd = form_factors(crystal.name).antisymmetric_ry;
  return std::all_of(std::begin(odd), std::end(odd), is_zero);
}

/// Counts the plane waves of ε by the volume of their sphere.
double plane_waves_of(const EmpiricalCrystal& crystal, double cutoff_ry) {
  return empirical_crystal(crystal).volume_bohr3 * std::pow(cutoff_ry, 1.5) / (6.0 * kPi * kPi);
}

}  // namespace

double least_bytes_of_crystal(const EmpiricalCrystal& crystal, double cutoff_ry, bool on_cpu) {
  // χ, ε and the work space of its inverse are three complex matrices. A real ε on a GPU is
  // inverted in its place, beside a real χ.
  const double n_g = plane_waves_of(crystal, cutoff_ry);
  return (!on_cpu && may_be_real(crystal) ? 16.0 : 48.0) * n_g * n_g;
}

void require_room_of_crystal(const Deck& deck, const Workplace& place) {
  const double cutoff_ry = deck.epsilon.epsilon_cutoff_ry;
  const EmpiricalCrystal& crystal = deck.mean_field.crystal;
  if (!deck.mean_field.empirical || !deck.epsilon.stored.gamma.empty() || cutoff_ry <= 0.0) return;
  const double n_g = plane_waves_of(crystal, cutoff_ry);
  Plan plan;
  plan.epsilon.epsilon_cutoff_ry = cutoff_ry;
  plan.least_memory_bytes = static_cast<std::int64_t>(least_bytes_of_crystal(
      crystal, cutoff_ry, place.team.first().device().backend == Backend::kCpu));
  if (!obstacle_to_slices(deck)) {
    const int wanted = deck.epsilon.column_slices;
    plan.epsilon.column_slices = wanted > 0 ? wanted : kMostColumnSlices;
    const SliceBytes slice =
        bytes_of_slices(n_g, 0.0, plan.epsilon.column_slices, may_be_real(crystal));
    plan.least_memory_bytes =
        std::min(plan.least_memory_bytes, static_cast<std::int64_t>(slice.least()));
  }
  require_room(plan, place.memory_limit_bytes, remedy_of_slices(deck));
  // ε⁻¹ comes to the host once as it is inverted, and once more for the result.
  plan.host_bytes = plan.screening_bytes = static_cast<std::int64_t>(32.0 * n_g * n_g);
  require_host_room(plan, place.host_limit_bytes);
}

void add_eigensolver_to_plan(const Deck& deck, const Device& device, Calculation& run) {
  const bool as_operator =
      deck.mean_field.empirical && deck.mean_field.eigensolver.method == Eigensolver::kOperator;
  const CallMemory memory =
      as_operator
          ? memory_of_operator_states(operator_work_of_crystal(deck.mean_field.crystal), device)
          : memory_of_dense_states(dense_work_of(deck.mean_field, demand_of(deck), run.field.waves),
                                   device);
  run.plan.device.mean_field = static_cast<double>(memory.device_bytes);
  run.plan.host.mean_field = static_cast<double>(memory.host_bytes);
  run.plan.set_peaks();
}

void require_support_of_spinors(const Deck& deck, const MeanField& field) {
  if (field.n_spinor() == 1) return;
  if (deck.perturbation.wanted && !deck.mean_field.empirical)
    throw InvalidInput(
        "[perturbation] is not allowed with the spinors of WFN (nspinor = 2): VKB has no D "
        "between both components, so that displaced files hold no first order of spin–orbit "
        "coupling; remove that table, or set meanfield.source = \"epm\" with "
        "meanfield.spin_orbit_ry_bohr2");
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

namespace {

bool is_accepted(const Deck& deck, const SelfCheck& check) {
  return std::find(deck.accepted_laws.begin(), deck.accepted_laws.end(), check.name) !=
         deck.accepted_laws.end();
}

std::string sentence_of(const SelfCheck& check) {
  return "self-test: " + check.name + " = " + shown(*check.value) + " is outside " +
         shown(check.low) + " … " + shown(check.high) + ": " + check.suspect;
}

}  // namespace

void require_sound(const Deck& deck, const std::vector<SelfCheck>& list) {
  for (const SelfCheck& check : list)
    if (!check.passed() && !is_accepted(deck, check) && !deck.study.within)
      throw InvalidInput(sentence_of(check) + ". Correct the data, or accept the law: [checks] " +
                         "accept = [\"" + check.name + "\"]");
}

void note_violations(const Deck& deck, Progress& progress, Calculation& run) {
  for (const SelfCheck& check : run.self_test) {
    if (check.passed()) continue;
    run.plan.notes.push_back(sentence_of(check));
    progress.log(run.plan.notes.back());
    if (!is_accepted(deck, check)) run.violated_laws.push_back(check.name);
  }
}

}  // namespace quasi::gw
