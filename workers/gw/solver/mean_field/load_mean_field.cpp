#include "workers/gw/solver/mean_field/load_mean_field.hpp"

#include <algorithm>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_memory.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/espresso/file_or_save.hpp"
#include "workers/gw/solver/mean_field/mean_field_checks.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"
#include "workers/gw/solver/self_energy/exchange_correlation.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// Returns the work of making states of the files VSC and VKB on the spheres of WFN.
DenseStatesWork dense_work_of_files(const Wavefunctions& waves, int bands) {
  DenseStatesWork work{.n_bands = bands,
                       .n_lists = std::int64_t{waves.n_k()} * waves.header.n_spins,
                       .real = waves.header.is_real};
  for (const KPointWaves& at : waves.waves)
    work.n_pw = std::max(work.n_pw, static_cast<std::int64_t>(at.g.size()));
  return work;
}

void require_room(const DenseStatesWork& work, const std::string& asked,
                  const MeanFieldDemand& demand, const Device& device) {
  require_room_of_dense_states(work, asked, memory_of_dense_states(work, device), demand.room);
}

void require_room_of_operator(const EmpiricalCrystal& crystal, const MeanFieldDemand& demand,
                              const Device& device) {
  const OperatorStatesWork work = operator_work_of_crystal(crystal);
  require_room_of_operator_states(work, "meanfield.bands = " + std::to_string(crystal.bands),
                                  memory_of_operator_states(work, device), demand.room);
}

/// Replaces the states of WFN by those of H if more bands are needed than WFN holds, or if H is
/// needed beside its states.
void add_bands(const MeanFieldOptions& files, const MeanFieldDemand& demand, Wavefunctions& waves,
               GwKernels& kernels, Progress& progress) {
  const int wanted = std::max(demand.bands, waves.n_bands);
  if ((wanted == waves.n_bands && !demand.hamiltonian) || files.vsc.empty()) return;
  if (!files.vxc.empty() && !holds_potential(files.vxc))
    throw InvalidInput("meanfield.vxc = '" + files.vxc.filename().string() +
                       "' holds matrix elements of other states than the " +
                       std::to_string(wanted) +
                       " that are made from VSC and VKB; give the file VXC itself");
  if (files.eigensolver.method == Eigensolver::kDense)
    require_room(dense_work_of_files(waves, wanted),
                 "epsilon.bands or sigma.bands = " + std::to_string(wanted), demand,
                 kernels.device());
  const PlaneWaveField potential = load_field(files.vsc, "VSC");
  const Projectors projectors = load_projectors(files.vkb);
  replace_by_dense_states(waves, wanted, {potential, projectors, files.eigensolver}, kernels,
                          progress);
}

/// Returns the projectors between the plane waves of VKB, for q → 0 without WFNq.
std::shared_ptr<const RadialProjectors> projectors_between(const MeanFieldOptions& files,
                                                           const MeanFieldHeader& header,
                                                           Progress& progress) {
  const Projectors projectors = load_projectors(files.vkb);
  require_same_crystal(header, "WFN", projectors.header, "VKB");
  auto nonlocal = std::make_shared<const RadialProjectors>(projectors);
  progress.log("q → 0 without WFNq: projectors between the plane waves of VKB are known to " +
               shown(nonlocal->residual()) + " of their maximum");
  if (nonlocal->residual() > files.max_projector_residual)
    throw InvalidInput("the projectors of VKB are known between its plane waves only to " +
                       shown(nonlocal->residual()) + " of their maximum, more than " +
                       shown(files.max_projector_residual) +
                       " (meanfield.max_projector_residual); give meanfield.wfnq");
  return nonlocal;
}

/// Returns a density without structure, where the states are forgotten.
PlaneWaveField uniform_density(const Wavefunctions& waves) {
  const auto n_spins = static_cast<std::size_t>(waves.header.n_spins);
  PlaneWaveField density{.header = waves.header, .values = {}};
  for (std::size_t spin = 0; spin < n_spins; ++spin) {
    auto& values = density.values.emplace_back(waves.header.g.size());
    const auto zero = std::find(waves.header.g.begin(), waves.header.g.end(), IVec3{});
    values[static_cast<std::size_t>(zero - waves.header.g.begin())] =
        waves.header.electrons_per_band() * waves.last_occupied[spin * waves.k.size()];
  }
  return density;
}

/// Returns the density of RHO or, without that file, of the occupied states.
/// @param forgets  StateStorage::forget
PlaneWaveField density_of(const MeanFieldOptions& files, bool forgets, Wavefunctions& waves,
                          GwKernels& kernels) {
  if (!files.rho.empty()) return load_field(files.rho, "RHO");
  if (forgets && waves.waves[0].coefficients[0].is_mapped()) return uniform_density(waves);
  std::int64_t points = 1;
  for (const int n : waves.k_grid) points *= std::max(1, n);
  complete_by_time_reversal(waves, points);
  const BrillouinZone zone(waves.k, waves.header.crystal.symmetries, points, "WFN");
  std::vector<int> occupied;
  for (std::size_t spin = 0; spin < static_cast<std::size_t>(waves.header.n_spins); ++spin)
    occupied.push_back(waves.last_occupied[spin * waves.k.size()]);
  return {.header = waves.header,
          .values = summed_density(waves, zone, occupied, waves.header.g, kernels)};
}

/// Checks that the k-points of a folder PREFIX.save form a grid, before its states are read.
/// @throws InvalidInput if they do not
void require_grid(const std::filesystem::path& path) {
  if (!is_espresso_save(path)) return;
  const Wavefunctions bands = read_espresso_save(path).bands;
  if (bands.k_grid != IVec3{}) return;
  throw InvalidInput("meanfield.save = '" + path.filename().string() + "' has " +
                     std::to_string(bands.n_k()) +
                     " k-points that form no grid with their images; rerun pw.x with `K_POINTS "
                     "automatic` and no shift, e.g. 4 4 4 0 0 0");
}

using HamiltonianAt = std::function<HamiltonianParts(const Wavefunctions&, int spin, int ik)>;

/// @param spin_orbit  spin–orbit term of the crystal; null if its states have one component
HamiltonianAt hamiltonian_of_crystal(const EmpiricalCrystal& crystal,
                                     std::shared_ptr<const SpinOrbitTerm> spin_orbit) {
  return [potential = empirical_potential(crystal), spin_orbit](const Wavefunctions& waves, int,
                                                                int ik) {
    const auto at = static_cast<std::size_t>(ik);
    const std::vector<IVec3>& g = waves.waves[at].g;
    HamiltonianParts parts = local_parts(waves.header.crystal, waves.k[at], g, potential);
    if (spin_orbit != nullptr) spin_orbit->add_to(waves.k[at], g, parts);
    return parts;
  };
}

HamiltonianAt hamiltonian_of_files(const MeanFieldOptions& files) {
  auto potential = std::make_shared<const PlaneWaveField>(load_field(files.vsc, "VSC"));
  auto projectors = std::make_shared<const Projectors>(load_projectors(files.vkb));
  return [potential, projectors](const Wavefunctions& waves, int spin, int ik) {
    return hamiltonian_parts(waves, ik, spin, *potential, *projectors);
  };
}

/// Returns a function that diagonalises H between the k-points of WFN.
ShiftedStates shifted_states_of_files(const MeanFieldOptions& files,
                                      std::shared_ptr<const RadialProjectors> nonlocal) {
  auto potential = std::make_shared<const PlaneWaveField>(load_field(files.vsc, "VSC"));
  return [potential, nonlocal, eigensolver = files.eigensolver](
             const Wavefunctions& waves, const Vec3& q, GwKernels& kernels, Progress& progress) {
    return shifted_dense_states(
        waves, q,
        {waves.header.crystal, waves.wavefunction_cutoff_ry, *potential, *nonlocal, eigensolver},
        kernels, progress);
  };
}

/// Makes the states of WFN_inner from its VSC and VKB if more bands are needed than it holds.
void add_inner_bands(const MeanFieldOptions& files, const MeanFieldDemand& demand, int wanted,
                     Wavefunctions& waves, GwKernels& kernels, Progress& progress) {
  if (files.vsc_inner.empty() || wanted <= waves.n_bands) return;
  if (waves.header.n_spinor == 2)
    throw InvalidInput("meanfield.vsc_inner = '" + files.vsc_inner.filename().string() +
                       "' is not allowed with the spinors of WFN_inner, whose Hamiltonian is not "
                       "made from files; remove vsc_inner and vkb_inner");
  if (files.eigensolver.method == Eigensolver::kDense)
    require_room(dense_work_of_files(waves, wanted), "sigma.bands = " + std::to_string(wanted),
                 demand, kernels.device());
  const PlaneWaveField potential = load_field(files.vsc_inner, "VSC");
  const Projectors projectors = load_projectors(files.vkb_inner);
  for (const auto& [header, name] : {std::pair{&potential.header, "meanfield.vsc_inner"},
                                     std::pair{&projectors.header, "meanfield.vkb_inner"}})
    require_same_crystal(waves.header, "meanfield.wfn_inner", *header, name);
  replace_by_dense_states(waves, wanted, {potential, projectors, files.eigensolver}, kernels,
                          progress);
}

/// Loads the inner states of Σ of a displaced crystal, if the job has them.
/// @param field  mean field at rest
std::shared_ptr<const InnerStates> load_inner_states(const MeanFieldOptions& files,
                                                     const MeanFieldDemand& demand,
                                                     const MeanField& field, GwKernels& kernels,
                                                     Progress& progress) {
  if (files.wfn_inner.empty()) return {};
  StateStorage storage = demand.states;
  storage.name = "WFN_inner";
  InnerStates inner = make_inner_states(field, load_states(files.wfn_inner, storage));
  add_inner_bands(files, demand, std::max(demand.bands, field.waves.n_bands), inner.waves, kernels,
                  progress);
  return std::make_shared<const InnerStates>(std::move(inner));
}

}  // namespace

DenseStatesWork dense_work_of(const MeanFieldOptions& source, const MeanFieldDemand& demand,
                              const Wavefunctions& waves) {
  if (source.empirical) return dense_work_of_crystal(source.crystal);
  const bool made = demand.hamiltonian || demand.bands >= waves.n_bands,
             shifted = source.long_wave == LongWave::kDense && demand.screening;
  if (source.eigensolver.method != Eigensolver::kDense || source.vsc.empty() || !(made || shifted))
    return {};
  return dense_work_of_files(waves, waves.n_bands);
}

MeanField load_mean_field(const MeanFieldOptions& source, const MeanFieldDemand& demand,
                          GwKernels& kernels, Progress& progress, StepTimes* times) {
  if (source.empirical) {
    require_room(dense_work_of_crystal(source.crystal),
                 "meanfield.bands = " + std::to_string(source.crystal.bands), demand,
                 kernels.device());
    require_room_of_operator(source.crystal, demand, kernels.device());
    MeanField field = empirical_mean_field(source.crystal, kernels, progress, times);
    if (demand.hamiltonian)
      field.hamiltonian = hamiltonian_of_crystal(source.crystal, field.spin_orbit);
    return field;
  }
  std::optional<Wavefunctions> shifted;
  if (!source.wfnq.empty()) {
    StateStorage of_shifted = demand.states;
    of_shifted.name = "WFNq";
    shifted = load_states(source.wfnq, of_shifted);
  }
  require_grid(source.wfn);
  Wavefunctions waves = load_states(source.wfn, demand.states);
  if (waves.header.n_spinor == 2 && !source.vsc.empty())
    throw InvalidInput("meanfield.vsc = '" + source.vsc.filename().string() +
                       "' is not allowed with the spinors of WFN (nspinor = 2): VKB has no D "
                       "between both components, and so no spin–orbit coupling; remove vsc and "
                       "vkb, and give wfnq for the limit q → 0");
  add_bands(source, demand, waves, kernels, progress);
  std::shared_ptr<const RadialProjectors> nonlocal;
  if ((source.long_wave != LongWave::kStates && demand.screening) || demand.shifts) {
    nonlocal = projectors_between(source, waves.header, progress);
    if (source.long_wave == LongWave::kDense) {
      if (source.eigensolver.method == Eigensolver::kDense)
        require_room(dense_work_of_files(waves, waves.n_bands), "meanfield.long_wave = \"dense\"",
                     demand, kernels.device());
      const PlaneWaveField potential = load_field(source.vsc, "VSC");
      shifted = shifted_dense_states(waves, source.q0,
                                     {waves.header.crystal, waves.wavefunction_cutoff_ry, potential,
                                      *nonlocal, source.eigensolver},
                                     kernels, progress);
    }
  }
  PlaneWaveField density = density_of(source, demand.states.forget, waves, kernels);
  MeanField field = make_mean_field(std::move(waves), std::move(shifted), std::move(density));
  field.nonlocal = nonlocal;
  field.inner = load_inner_states(source, demand, field, kernels, progress);
  if (demand.shifts) field.shifted_states = shifted_states_of_files(source, nonlocal);
  if (demand.hamiltonian) field.hamiltonian = hamiltonian_of_files(source);
  // The truncated interaction of a molecule is finite at q = 0, where ⟨v|c⟩ = 0. The head is then 1
  // and needs no second set of states.
  if (demand.molecule && !field.shifted) {
    field.by_velocity = true;
    field.q0 = {1e-6, 0.0, 0.0};
  }
  if (source.long_wave == LongWave::kVelocity) {
    field.by_velocity = true;
    field.q0 = source.q0;
  }
  return field;
}

}  // namespace quasi::gw
