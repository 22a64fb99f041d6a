#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/mean_field/gauge.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// H = |k+G|² + V(G − G') of a built-in crystal on the spheres |k+G|² < cut-off. With
/// `spin_orbit`, which may be null, its states are spinors.
struct LocalHamiltonian {
  const Crystal& crystal;
  const PotentialElements& potential;
  double cutoff_ry = 0.0;
  EigensolverOptions eigensolver;
  const SpinOrbitTerm* spin_orbit = nullptr;

  int n_spinor() const { return spin_orbit != nullptr ? 2 : 1; }
};

/// Fills H at one k, [n_spinor n_pw][n_spinor n_pw].
void fill_hamiltonian(const LocalHamiltonian& hamiltonian, const GSphere& sphere, Cplx* h) {
  // V differs from 0 at a few dozen G: each is found once and scattered, instead of n² structure
  // factors.
  const GIndex index(sphere.g);
  const PotentialElements& elements = hamiltonian.potential;
  const std::int64_t n_pw = sphere.size(), n = n_pw * hamiltonian.n_spinor();
  // Every thread is the first to touch the rows it fills: gigabytes set to 0 by one thread would
  // take as long as the rest.
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t i = row % n_pw, first = row - i;
    Cplx* to = h + row * n;
    std::fill_n(to, n, Cplx{});
    for (const auto& [difference, value] : elements) {
      const std::int32_t j = index.find(sphere.g[static_cast<std::size_t>(i)] - difference);
      if (j >= 0) to[first + j] = value;
    }
    to[row] += sphere.kinetic_ry[static_cast<std::size_t>(i)];
  }
  if (hamiltonian.spin_orbit != nullptr) hamiltonian.spin_orbit->add_to(sphere.q, sphere.g, h);
}

/// Returns the spin–orbit term of a built-in crystal, or null without one.
std::unique_ptr<const SpinOrbitTerm> spin_orbit_of(const EmpiricalCrystal& wanted,
                                                   const Crystal& crystal) {
  if (!wanted.spin_orbit_ry_bohr2) return nullptr;
  return std::make_unique<const SpinOrbitTerm>(spin_orbit_term(wanted, crystal));
}

/// Lowest eigenstates of H at one k on its own sphere, in a gauge that depends on H alone.
DenseStates states_at(const LocalHamiltonian& hamiltonian, const Vec3& k, int n_bands,
                      GwKernels& kernels, StepClock& clock) {
  const auto& [crystal, potential, cutoff_ry, eigensolver, spin_orbit] = hamiltonian;
  DenseStates states{.sphere = make_g_sphere(crystal.bdot, k, cutoff_ry),
                     .energy_ry = {},
                     .coefficients = {},
                     .n_spinor = hamiltonian.n_spinor()};
  const GSphere& sphere = states.sphere;
  const auto n = static_cast<std::int64_t>(states.row());
  if (n < n_bands)
    throw InvalidInput("meanfield.bands = " + std::to_string(n_bands) + " but the cut-off of " +
                       std::to_string(cutoff_ry) + " Ry gives only " + std::to_string(n) +
                       (states.n_spinor == 2 ? " spinor" : "") +
                       " plane waves; raise meanfield.cutoff_ry");
  if (eigensolver.method == Eigensolver::kOperator) {
    HamiltonianParts parts = local_parts(crystal, k, sphere.g, potential);
    if (spin_orbit != nullptr) spin_orbit->add_to(k, sphere.g, parts);
    LowestStates lowest =
        operator_states(std::move(parts), sphere.g, n_bands, eigensolver, kernels.hamiltonian());
    states.energy_ry = std::move(lowest.energy_ry);
    states.coefficients = std::move(lowest.coefficients);
    states.largest_residual_ry = lowest.largest_residual_ry;
    clock.step("eigensolver");
    return states;
  }
  const std::unique_ptr<double[]> storage(new double[static_cast<std::size_t>(2 * n * n)]);
  auto* const h = reinterpret_cast<Cplx*>(storage.get());
  fill_hamiltonian(hamiltonian, sphere, h);
  states.energy_ry.resize(static_cast<std::size_t>(n_bands));
  states.coefficients.resize(static_cast<std::size_t>(n_bands * n));
  clock.step("hamiltonian");
  kernels.dense().eigen_hermitian({h, {n, n}}, view<double>(states.energy_ry, n_bands),
                                  view<Cplx>(states.coefficients, n_bands, n));
  clock.step("diagonalisation");
  fix_gauge(sphere.g, states.energy_ry, kDegenerateStates_ry, states.coefficients, states.n_spinor);
  clock.step("gauge");
  return states;
}

/// The states wanted on a grid of k-points.
struct BandsOnGrid {
  IVec3 grid{};
  Vec3 shift{};  ///< of the grid, reduced
  int n_bands = 0;
  int n_occupied = 0;
};

/// Finds the lowest states of H at the irreducible points of a grid.
Wavefunctions states_on_grid(const LocalHamiltonian& hamiltonian, const MeanFieldHeader& header,
                             const BandsOnGrid& wanted, GwKernels& kernels, Progress& progress,
                             StepTimes* times) {
  const auto& [grid, shift, n_bands, n_occupied] = wanted;
  StepClock clock(times);
  Wavefunctions w;
  w.header = header;
  w.n_bands = n_bands;
  w.wavefunction_cutoff_ry = hamiltonian.cutoff_ry;
  w.k_grid = grid;
  for (int i = 0; i < 3; ++i) w.k_shift[i] = shift[i] * grid[i];
  std::vector<SymmetryOperation> group;
  for (const int s : little_group(header.crystal.symmetries, shift, true))
    group.push_back(header.crystal.symmetries[static_cast<std::size_t>(s)]);
  irreducible_points(grid, shift, group, &w.k, &w.weight);
  double residual_ry = 0.0;
  for (std::size_t ik = 0; ik < w.k.size(); ++ik) {
    DenseStates states = states_at(hamiltonian, w.k[ik], n_bands, kernels, clock);
    residual_ry = std::max(residual_ry, states.largest_residual_ry);
    w.waves.push_back({std::move(states.sphere.g), {std::move(states.coefficients)}});
    w.energy_ry.insert(w.energy_ry.end(), states.energy_ry.begin(), states.energy_ry.end());
    for (int band = 0; band < n_bands; ++band)
      w.occupation.push_back(band < n_occupied ? 1.0 : 0.0);
    w.first_occupied.push_back(1);
    w.last_occupied.push_back(n_occupied);
    progress.report("mean field", static_cast<std::int64_t>(ik) + 1,
                    static_cast<std::int64_t>(w.k.size()));
  }
  log_residual(hamiltonian.eigensolver, residual_ry, progress);
  return w;
}

/// True if the plane waves of every k hold more bands than are wanted.
bool holds_more_bands(const EmpiricalCrystal& wanted, const Crystal& crystal) {
  for (int i = 0; i < wanted.k_grid[0]; ++i)
    for (int j = 0; j < wanted.k_grid[1]; ++j)
      for (int k = 0; k < wanted.k_grid[2]; ++k) {
        const Vec3 at{1.0 * i / wanted.k_grid[0], 1.0 * j / wanted.k_grid[1],
                      1.0 * k / wanted.k_grid[2]};
        const GSphere sphere = make_g_sphere(crystal.bdot, at, wanted.wavefunction_cutoff_ry);
        if (sphere.size() * wanted.n_spinor() <= wanted.bands) return false;
      }
  return true;
}

/// Drops the bands from n on.
void keep_bands(Wavefunctions& w, int n) {
  const auto old = static_cast<std::size_t>(w.n_bands), kept = static_cast<std::size_t>(n);
  for (auto* list : {&w.energy_ry, &w.occupation}) {
    std::vector<double> shorter;
    for (std::size_t row = 0; row < list->size() / old; ++row)
      shorter.insert(shorter.end(), list->begin() + static_cast<std::ptrdiff_t>(row * old),
                     list->begin() + static_cast<std::ptrdiff_t>(row * old + kept));
    *list = std::move(shorter);
  }
  for (KPointWaves& at : w.waves)
    for (auto& c : at.coefficients)
      c.resize(kept * at.g.size() * static_cast<std::size_t>(w.header.n_spinor));
  w.n_bands = n;
}

}  // namespace

StatesAt empirical_states(const EmpiricalCrystal& wanted, const Crystal& crystal,
                          GwKernels& kernels) {
  auto potential = std::make_shared<const PotentialElements>(empirical_potential(wanted));
  std::shared_ptr<const SpinOrbitTerm> spin_orbit = spin_orbit_of(wanted, crystal);
  return [potential, spin_orbit, crystal, cutoff = wanted.wavefunction_cutoff_ry,
          eigensolver = wanted.eigensolver, &kernels](const Vec3& k, int /*spin*/, int n_bands) {
    StepClock unwatched(nullptr);
    return states_at({crystal, *potential, cutoff, eigensolver, spin_orbit.get()}, k, n_bands,
                     kernels, unwatched);
  };
}

MeanField empirical_mean_field(const EmpiricalCrystal& wanted, GwKernels& kernels,
                               Progress& progress, StepTimes* times) {
  MeanFieldHeader header;
  header.title = "WFN-Complex";
  header.n_spinor = wanted.n_spinor();
  header.crystal = empirical_crystal(wanted);
  header.density_cutoff_ry = 4.0 * wanted.wavefunction_cutoff_ry;
  header.g = make_g_sphere(header.crystal.bdot, {}, header.density_cutoff_ry).g;
  const IVec3 extent = component_extent(header.g);
  for (int i = 0; i < 3; ++i) header.fft_grid[i] = good_fft_size(2 * extent[i] + 1);
  const PotentialElements potential = empirical_potential(wanted);
  const int n_occupied = occupied_bands_of(wanted, header.crystal);
  std::shared_ptr<const SpinOrbitTerm> spin_orbit = spin_orbit_of(wanted, header.crystal);

  // One band more than wanted shows whether the last one belongs to a multiplet that would be cut.
  const bool one_more = holds_more_bands(wanted, header.crystal);
  const LocalHamiltonian hamiltonian{header.crystal, potential, wanted.wavefunction_cutoff_ry,
                                     wanted.eigensolver, spin_orbit.get()};
  Wavefunctions waves = states_on_grid(hamiltonian, header,
                                       {.grid = wanted.k_grid,
                                        .shift = {},
                                        .n_bands = wanted.bands + (one_more ? 1 : 0),
                                        .n_occupied = n_occupied},
                                       kernels, progress, times);
  if (one_more) {
    const int whole =
        band_count_without_split(waves, wanted.bands, n_occupied + 1, "meanfield.bands");
    if (whole != wanted.bands)
      progress.log("meanfield.bands = " + std::to_string(wanted.bands) + " splits a multiplet; " +
                   std::to_string(whole) + " bands are made");
    keep_bands(waves, whole);
  }
  std::optional<Wavefunctions> shifted;
  if (!wanted.by_velocity)
    shifted = states_on_grid(hamiltonian, header,
                             {.grid = wanted.k_grid,
                              .shift = wanted.q0,
                              .n_bands = n_occupied + 1,
                              .n_occupied = n_occupied},
                             kernels, progress, times);
  StepClock clock(times);
  PlaneWaveField density{.header = header, .values = {}};
  density.header.title = "RHO-Complex";
  const BrillouinZone zone(waves.k, header.crystal.symmetries, 0, "the built-in crystal");
  density.values = summed_density(waves, zone, {n_occupied}, density.header.g, kernels);
  clock.step("density");
  MeanField field = make_mean_field(std::move(waves), std::move(shifted), std::move(density));
  field.by_velocity = wanted.by_velocity;
  field.spin_orbit = spin_orbit;
  field.q0 = wanted.q0;
  field.shifted_states = [wanted, spin_orbit](const Wavefunctions& at, const Vec3& q, GwKernels& on,
                                              Progress& reports) {
    const PotentialElements local = empirical_potential(wanted);
    const int occupied = at.last_occupied[0];
    return states_on_grid(
        {at.header.crystal, local, wanted.wavefunction_cutoff_ry, wanted.eigensolver,
         spin_orbit.get()},
        at.header, {.grid = at.k_grid, .shift = q, .n_bands = occupied + 1, .n_occupied = occupied},
        on, reports, nullptr);
  };
  return field;
}

}  // namespace quasi::gw
