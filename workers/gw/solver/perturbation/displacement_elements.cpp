#include "workers/gw/solver/perturbation/displacement_elements.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"
#include "workers/gw/solver/perturbation/finite_displacements/finite_difference.hpp"
#include "workers/gw/solver/perturbation/response/vxc_change.hpp"
#include "workers/gw/solver/perturbation/wave_vector/long_range.hpp"
#include "workers/gw/solver/perturbation/zero_point_modes.hpp"

namespace quasi::gw {
namespace {

/// Limit of an acoustic sum. The eigenstates are those of H to 1e-8 Ry or better.
constexpr double kAcousticLimit_ev = 1e-6;

}  // namespace

Vec3 unit_vector(char direction) {
  Vec3 unit{};
  unit[static_cast<std::size_t>(direction - 'x')] = 1.0;
  return unit;
}

namespace {

/// Positions of E_l and E_m among the energies of a derivative.
struct EnergyPositions {
  std::size_t bra, ket;

  EnergyPositions(const SigmaDerivativeAtK& all, std::size_t l, std::size_t m) {
    const auto n = static_cast<std::size_t>(all.n);
    const bool one_energy = all.energy_ry.size() == 1;  // static COHSEX
    bra = one_energy ? 0 : l;
    ket = one_energy ? 0 : (all.energy_ry.size() == 2 * n ? n : 0) + m;
  }
};

/// Returns the mean of ∂Σ at E_l and E_m without one block of random vectors.
std::vector<Cplx> mean_without(const SigmaDerivativeAtK& all, std::size_t block) {
  const auto n = static_cast<std::size_t>(all.n);
  const DerivativeSums& sums = all.without[block];
  std::vector<Cplx> mean(sums.exchange);
  for (std::size_t i = 0; i < n * n; ++i) {
    const EnergyPositions at(all, i / n, i % n);
    mean[i] += 0.5 * (sums.correlation[at.bra * n * n + i] + sums.correlation[at.ket * n * n + i]);
  }
  return mean;
}

}  // namespace

ElementsAtK at_bra_and_ket(const SigmaDerivativeAtK& all) {
  const auto n = static_cast<std::size_t>(all.n);
  ElementsAtK elements{.mean_field = all.mean_field,
                       .sigma_bra = std::vector<Cplx>(n * n),
                       .sigma_ket = std::vector<Cplx>(n * n),
                       .fixed_energies = std::vector<Cplx>(n * n)};
  for (std::size_t block = 0; block < all.without.size(); ++block)
    elements.sigma_without.push_back(mean_without(all, block));
  for (std::size_t l = 0; l < n; ++l)
    for (std::size_t m = 0; m < n; ++m) {
      const std::size_t i = l * n + m;
      const auto [bra, ket] = EnergyPositions(all, l, m);
      const auto row = static_cast<std::int64_t>(l), column = static_cast<std::int64_t>(m);
      elements.sigma_bra[i] = all.at(bra, row, column);
      elements.sigma_ket[i] = all.at(ket, row, column);
      elements.fixed_energies[i] =
          all.sigma.exchange[i] + 0.5 * (all.sigma.fixed_energies[bra * n * n + i] +
                                         all.sigma.fixed_energies[ket * n * n + i]);
    }
  return elements;
}

std::vector<Cplx> mean_of_bra_and_ket(const std::vector<Cplx>& all, std::size_t n) {
  const std::size_t n_e = all.size() / (n * n), first_ket = n_e == 2 * n ? n : 0;
  const bool one_energy = n_e == 1;  // static COHSEX
  std::vector<Cplx> mean(n * n);
  for (std::size_t l = 0; l < n; ++l)
    for (std::size_t m = 0; m < n; ++m) {
      const std::size_t i = l * n + m, bra = one_energy ? 0 : l,
                        ket = one_energy ? 0 : first_ket + m;
      mean[i] = 0.5 * (all[bra * n * n + i] + all[ket * n * n + i]);
    }
  return mean;
}

namespace {

std::vector<double> outer_energies_ry(const MeanField& field, const SigmaOptions& options) {
  std::vector<double> energies_ry;
  for (int band = options.band_min; band <= options.band_max; ++band)
    energies_ry.push_back(field.waves.energy(0, options.kpoints.front(), band - 1));
  return energies_ry;
}

/// Perturbations of a job and the response of states beyond the bands of Σ.
struct PerturbedStates {
  std::vector<Perturbation> perturbations;
  std::optional<StateResponse> response;             ///< absent: the bands of Σ respond alone
  const FilteredPseudobands* pseudobands = nullptr;  ///< null: all bands are eigenstates
};

/// Calculates the elements of all displacements at one k.
std::vector<ElementsAtK> calculate(const MeanField& field,
                                   const std::vector<DielectricMatrix>& epsilon,
                                   const SigmaOptions& options, const PerturbedStates& perturbed,
                                   const StepContext& context, StepTimes& times) {
  std::vector<ElementsAtK> list;
  const std::vector<double> energies_ry = outer_energies_ry(field, options);
  const DerivativeRequest request{perturbed.perturbations, energies_ry, &times,
                                  perturbed.response ? &*perturbed.response : nullptr,
                                  perturbed.pseudobands};
  for (const auto& derivative : sigma_derivatives(field, epsilon, options, request, context))
    list.push_back(at_bra_and_ket(derivative.front()));
  return list;
}

/// Displacements of a job, and the step of their check.
struct CheckedDisplacements {
  const DisplacedCrystal& displaced;
  const std::vector<Displacement>& list;

  std::vector<DisplacedPotentials> potentials(const Crystal& crystal) const {
    std::vector<DisplacedPotentials> pairs;
    for (const Displacement& d : list) {
      const auto moved_by = [&](double step_bohr) -> PotentialOfCrystal {
        const Vec3 step = step_bohr * unit_vector(d.direction);
        return {displaced_potential(displaced.crystal, crystal, d.atom - 1, step,
                                    displaced.request.all_lengths),
                displaced_spin_orbit(displaced.crystal, crystal, d.atom - 1, step)};
      };
      pairs.push_back({moved_by(displaced.request.check_step_bohr),
                       moved_by(-displaced.request.check_step_bohr)});
    }
    return pairs;
  }
};

/// Adds the first order by finite displacements to the elements of all displacements of a built-in
/// crystal at one k.
void add_differences(const CheckedDisplacements& checked, const MeanField& field,
                     const std::vector<DielectricMatrix>& epsilon, const SigmaOptions& options,
                     const DeviceContext& context, std::vector<ElementsAtK>& elements) {
  const auto potentials = checked.potentials(field.crystal());
  const std::vector<double> energies_ry = outer_energies_ry(field, options);
  const auto found =
      finite_differences(field, epsilon, options,
                         {potentials, energies_ry, checked.displaced.request.check_step_bohr,
                          checked.displaced.pseudobands},
                         context);
  for (std::size_t d = 0; d < elements.size(); ++d)
    elements[d].difference = mean_of_bra_and_ket(found[d], energies_ry.size());
}

/// Returns the largest diagonal element of the sum over the atoms, for any k and direction.
template <typename Element>
double largest_acoustic_sum(const DisplacementElements& found, const Element& element) {
  const auto n = static_cast<std::size_t>(found.band_max - found.band_min + 1);
  double largest = 0.0;
  for (const char direction : {'x', 'y', 'z'})
    for (std::size_t k = 0; k < found.k_index.size(); ++k)
      for (std::size_t l = 0; l < n; ++l) {
        Cplx sum;
        for (std::size_t d = 0; d < found.displacements.size(); ++d)
          if (found.displacements[d].direction == direction)
            sum += element(found.at[d][k], l * n + l);
        largest = std::max(largest, std::abs(sum));
      }
  return largest;
}

void require_acoustic(double sum_ry) {
  if (sum_ry * kRydberg_ev <= kAcousticLimit_ev) return;
  char text[240];
  std::snprintf(
      text, sizeof text,
      "the acoustic sum of the mean field is %.2e eV/Bohr, above the limit of %.0e: a rigid shift "
      "changes an energy; lower meanfield.residual_ry or correct the potential",
      sum_ry * kRydberg_ev, kAcousticLimit_ev);
  throw NotConverged(text);
}

/// Examines the sums over all atoms. @pre all atoms are displaced
void examine_acoustic_sums(DisplacementElements& found) {
  found.acoustic_mean_field_ry = largest_acoustic_sum(
      found, [](const ElementsAtK& e, std::size_t i) { return e.mean_field[i]; });
  found.acoustic_sigma_ry =
      largest_acoustic_sum(found, [](const ElementsAtK& e, std::size_t i) { return e.sigma(i); });
}

/// True if every atom is displaced along the same axes.
bool displaces_all_atoms(const DisplacementElements& found, const Crystal& crystal) {
  std::map<int, std::string> axes;
  for (const Displacement& d : found.displacements) axes[d.atom] += d.direction;
  return axes.size() == crystal.atoms.size() &&
         std::all_of(axes.begin(), axes.end(),
                     [&](const auto& of_atom) { return of_atom.second == axes.begin()->second; });
}

}  // namespace

void add_wave_differences(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                          const SigmaOptions& options, const WaveDifferenceRequest& wanted,
                          const DeviceContext& context, std::vector<ElementsAtK>& elements) {
  const auto found = wave_differences(field, epsilon, options, wanted, context);
  const auto n = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  for (std::size_t d = 0; d < elements.size(); ++d)
    elements[d].difference = mean_of_bra_and_ket(found[d], n);
}

double largest_deviation_ry(const ElementsAtK& at) {
  double largest = 0.0;
  for (std::size_t i = 0; i < at.difference.size(); ++i)
    largest = std::max(largest, std::abs(at.difference[i] - at.sigma(i)));
  return largest;
}

DisplacementElements elements_without(const DisplacementElements& found, std::size_t block) {
  DisplacementElements rest = found;
  for (auto& at_k : rest.at)
    for (ElementsAtK& at : at_k) at.sigma_bra = at.sigma_ket = at.sigma_without[block];
  return rest;
}

std::vector<Displacement> displacements_of(const PerturbationRequest& request,
                                           const Crystal& crystal) {
  std::vector<int> atoms = request.atoms;
  if (atoms.empty())
    for (std::size_t atom = 1; atom <= crystal.atoms.size(); ++atom)
      atoms.push_back(static_cast<int>(atom));
  std::vector<Displacement> list;
  for (const int atom : atoms)
    for (const char direction : request.directions) list.push_back({atom, direction});
  return list;
}

std::vector<Displacement> displacements_of(const DisplacedCrystal& displaced,
                                           const Crystal& crystal) {
  if (displaced.files == nullptr) return displacements_of(displaced.request, crystal);
  std::vector<Displacement> list;
  for (const FileDisplacement& made : *displaced.files) list.push_back(made.displacement);
  return list;
}

void check_displacements(const PerturbationRequest& request, const Crystal& crystal) {
  for (const int atom : request.atoms)
    if (atom > static_cast<int>(crystal.atoms.size()))
      throw InvalidInput("perturbation.atoms names atom " + std::to_string(atom) +
                         ", but the cell has " + std::to_string(crystal.atoms.size()) +
                         " atoms; count them from 1");
  check_born_charges(request, crystal);
  if (request.modes) zero_point_modes(*request.modes, crystal);
  if (!request.modes_at_q.empty())
    for (const Vec3& q : request.wave_vectors) zero_point_modes_at(request.modes_at_q, q, crystal);
}

void check_response(const PerturbationRequest& request, const MeanField& field, int bands) {
  if (!request.sternheimer) return;
  const auto& waves = field.waves.waves;
  if (std::all_of(waves.begin(), waves.end(), [&](const KPointWaves& at) {
        return std::ssize(at.g) * field.n_spinor() <= bands;
      }))
    throw InvalidInput(
        "perturbation.state_response = \"sternheimer\" changes nothing here: the " +
        std::to_string(bands) +
        " bands of Sigma hold all plane waves of every k-point; set \"sum\" or lower sigma.bands");
}

std::vector<Perturbation> perturbations_of(const DisplacedCrystal& displaced,
                                           const Crystal& crystal) {
  std::vector<Perturbation> list;
  if (displaced.files != nullptr) {
    for (const FileDisplacement& made : *displaced.files) list.push_back(made.potential_at({}));
    return list;
  }
  for (const Displacement& d : displacements_of(displaced.request, crystal)) {
    list.push_back(atom_displacement(displaced.crystal, crystal, d.atom - 1,
                                     unit_vector(d.direction),
                                     {.all_lengths = displaced.request.all_lengths}));
    list.back().name = d.name();
  }
  return list;
}

DisplacementElements displacement_elements(const DisplacedCrystal& displaced,
                                           const MeanField& field,
                                           const std::vector<DielectricMatrix>& epsilon,
                                           SigmaOptions options, const StepContext& context) {
  DisplacementElements found{.displacements = displacements_of(displaced, field.crystal()),
                             .k_index = std::exchange(options.kpoints, {}),
                             .band_min = options.band_min,
                             .band_max = options.band_max};
  options.slope = false;
  PerturbedStates perturbed{.perturbations = perturbations_of(displaced, field.crystal()),
                            .response = {},
                            .pseudobands = displaced.pseudobands};
  if (displaced.request.sternheimer)
    perturbed.response = {empirical_potential(displaced.crystal),
                          displaced.request.response_residual, field.spin_orbit};
  const auto vxc = vxc_changes(displaced, perturbed.perturbations, field, context.team.first());
  found.at.resize(found.displacements.size());
  StepTimes times;
  for (const int ik : found.k_index) {
    options.kpoints = {ik};
    auto list = calculate(field, epsilon, options, perturbed, context, times);
    const DeviceContext first{context.coulomb, context.team.first(), context.progress};
    const double step_bohr = displaced.request.check_step_bohr;
    if (step_bohr > 0.0 && displaced.files == nullptr)
      add_differences({displaced, found.displacements}, field, epsilon, options, first, list);
    if (step_bohr > 0.0 && displaced.files != nullptr)
      add_wave_differences(field, epsilon, options,
                           {perturbed.perturbations, outer_energies_ry(field, options), step_bohr},
                           first, list);
    add_matrices(vxc, field, options, context.team.first(), &ElementsAtK::vxc, list);
    for (std::size_t d = 0; d < list.size(); ++d) found.at[d].push_back(std::move(list[d]));
  }
  if (displaces_all_atoms(found, field.crystal())) examine_acoustic_sums(found);
  // Central differences of files miss the acoustic sum of the mean field by more than rounding.
  if (displaced.files == nullptr && found.acoustic_mean_field_ry)
    require_acoustic(*found.acoustic_mean_field_ry);
  found.seconds = times.seconds();
  return found;
}

}  // namespace quasi::gw
