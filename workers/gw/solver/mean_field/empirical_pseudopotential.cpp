#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

#include <spglib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/mean_field/gauge.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

struct Structure {
  Mat3 lattice{};              ///< rows, Bohr
  std::vector<Vec3> position;  ///< reduced
  std::vector<int> kind;       ///< 0 or 1
};

Structure make_structure(const EmpiricalCrystal& wanted, double a) {
  // The primitive vectors of the reference files, so that q-lists coincide.
  const Mat3 primitive{{{-0.5, 0.0, 0.5}, {0.0, 0.5, 0.5}, {-0.5, 0.5, 0.0}}};
  const Mat3 cubic{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  Structure s;
  const Mat3& cell = wanted.cubic_cell ? cubic : primitive;
  for (int i = 0; i < 3; ++i)
    s.lattice[i] = (a * wanted.repeats[i]) * multiply(wanted.deformation, cell[i]);
  std::vector<Vec3> base{{-0.125, -0.125, -0.125}, {0.125, 0.125, 0.125}};
  std::vector<int> kinds{0, 1};
  if (wanted.cubic_cell) {
    base.clear();
    kinds.clear();
    for (const Vec3& shift :
         {Vec3{0, 0, 0}, Vec3{0, 0.5, 0.5}, Vec3{0.5, 0, 0.5}, Vec3{0.5, 0.5, 0}})
      for (int t = 0; t < 2; ++t) {
        const double x = t == 0 ? -0.125 : 0.125;
        base.push_back(shift + Vec3{x, x, x});
        kinds.push_back(t);
      }
  }
  for (int i = 0; i < wanted.repeats[0]; ++i)
    for (int j = 0; j < wanted.repeats[1]; ++j)
      for (int k = 0; k < wanted.repeats[2]; ++k)
        for (std::size_t n = 0; n < base.size(); ++n) {
          const Vec3 p = base[n] + to_real({i, j, k});
          s.position.push_back(
              Vec3{p[0] / wanted.repeats[0], p[1] / wanted.repeats[1], p[2] / wanted.repeats[2]} +
              wanted.origin_shift);
          s.kind.push_back(kinds[n]);
        }
  return s;
}

/// True if a rotation maps the points of a k-grid onto each other: k'_j = R_ji/n_i is a multiple of
/// 1/n_j.
bool keeps_grid(const IMat3& rotation, const IVec3& grid) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (grid[j] * rotation[j][i] % grid[i] != 0) return false;
  return true;
}

/// The point operations of the crystal that the k-grid has too, with their translations. The pure
/// translations of a supercell would enlarge the group beyond what the files of BerkeleyGW can
/// hold. A supercell is therefore used without symmetry.
std::vector<SymmetryOperation> find_symmetries(const Structure& s, const EmpiricalCrystal& wanted) {
  const SymmetryOperation identity{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {}};
  std::vector<SymmetryOperation> operations{identity};
  if (wanted.cubic_cell || wanted.repeats != IVec3{1, 1, 1}) return operations;
  double lattice[3][3];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) lattice[j][i] = s.lattice[i][j];
  std::vector<std::array<double, 3>> positions(s.position.begin(), s.position.end());
  const FormFactors& factors = form_factors(wanted.name);
  const bool same = factors.atomic_number[0] == factors.atomic_number[1];
  std::vector<int> types;
  for (const int kind : s.kind) types.push_back(same ? 1 : kind + 1);
  SpglibDataset* data = spg_get_dataset(lattice, reinterpret_cast<double(*)[3]>(positions.data()),
                                        types.data(), static_cast<int>(types.size()), 1e-6);
  if (data == nullptr)
    throw InvalidInput("the symmetry of the built-in crystal could not be found");
  for (int n = 0; n < data->n_operations; ++n) {
    IMat3 w{};
    SymmetryOperation operation;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) w[i][j] = data->rotations[n][i][j];
    const IMat3 inv = inverse(w);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) operation.rotation[i][j] = inv[j][i];
      double t = data->translations[n][i];
      t -= std::round(t);
      operation.translation[i] = 2.0 * kPi * t;
    }
    if (operation.rotation != identity.rotation && keeps_grid(operation.rotation, wanted.k_grid))
      operations.push_back(operation);
  }
  spg_free_dataset(data);
  return operations;
}

Crystal make_crystal(const Structure& s, const FormFactors& factors, double a,
                     std::vector<SymmetryOperation> operations) {
  Crystal c;
  c.alat_bohr = a;
  c.blat_per_bohr = 2.0 * kPi / a;
  Mat3 reciprocal{};
  const Mat3& l = s.lattice;
  const auto cross = [](const Vec3& x, const Vec3& y) -> Vec3 {
    return {x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]};
  };
  const double det = dot(l[0], cross(l[1], l[2]));
  c.volume_bohr3 = std::abs(det);
  for (int i = 0; i < 3; ++i)
    reciprocal[i] = (2.0 * kPi / det) * cross(l[(i + 1) % 3], l[(i + 2) % 3]);
  c.recvol_per_bohr3 = std::pow(2.0 * kPi, 3) / c.volume_bohr3;
  for (int i = 0; i < 3; ++i) {
    c.avec[i] = (1.0 / a) * l[i];
    c.bvec[i] = (1.0 / c.blat_per_bohr) * reciprocal[i];
    for (int j = 0; j < 3; ++j) {
      c.adot[i][j] = dot(l[i], l[j]);
      c.bdot[i][j] = dot(reciprocal[i], reciprocal[j]);
    }
  }
  for (std::size_t n = 0; n < s.position.size(); ++n) {
    Vec3 p{};
    for (int i = 0; i < 3; ++i) p = p + (s.position[n][i] / a) * l[i];
    c.atoms.push_back({p, factors.atomic_number[s.kind[n]]});
  }
  c.symmetries = std::move(operations);
  return c;
}

/// V(G) of the local potential where it is not 0.
class LocalPotential {
 public:
  /// @param crystal  not deformed: form factors are known at its |G| alone
  LocalPotential(const Structure& s, const FormFactors& factors, const Crystal& crystal) {
    const double unit_ry = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
    constexpr int kShell[] = {3, 4, 8, 11};
    const GSphere sphere = make_g_sphere(crystal.bdot, {}, (kShell[3] + 0.5) * unit_ry);
    for (std::size_t i = 0; i < sphere.g.size(); ++i)
      for (int shell = 0; shell < 4; ++shell) {
        if (std::abs(sphere.kinetic_ry[i] / unit_ry - kShell[shell]) > 1e-6) continue;
        Cplx sum;
        for (std::size_t n = 0; n < s.position.size(); ++n) {
          const double v = factors.symmetric_ry[shell] +
                           (s.kind[n] == 0 ? -1.0 : 1.0) * factors.antisymmetric_ry[shell];
          sum += v * std::polar(1.0, -2.0 * kPi * dot(to_real(sphere.g[i]), s.position[n]));
        }
        values_.emplace_back(sphere.g[i], sum / static_cast<double>(s.position.size()));
      }
    // With an inversion centre at the origin V(G) is real but for the rounding of the phases; H is
    // then made exactly real where k is its own inverse, which halves every transform and quarters
    // every product.
    double largest = 0.0, imaginary = 0.0;
    for (const auto& [g, value] : values_) {
      largest = std::max(largest, std::abs(value));
      imaginary = std::max(imaginary, std::abs(value.imag()));
    }
    if (imaginary < 1e-13 * largest)
      for (auto& [g, value] : values_) value = value.real();
  }
  const PotentialElements& values() const { return values_; }

 private:
  PotentialElements values_;
};

double lattice_of(const EmpiricalCrystal& wanted, const FormFactors& factors) {
  return wanted.lattice_bohr > 0.0 ? wanted.lattice_bohr : factors.lattice_bohr;
}

LocalPotential potential_of(const EmpiricalCrystal& wanted) {
  const FormFactors& factors = form_factors(wanted.name);
  const double a = lattice_of(wanted, factors);
  EmpiricalCrystal plain = wanted;
  plain.deformation = EmpiricalCrystal{}.deformation;
  return {make_structure(wanted, a), factors,
          make_crystal(make_structure(plain, a), factors, a, {})};
}

/// H = |k+G|² + V(G − G') of a built-in crystal on the spheres |k+G|² < cut-off.
struct LocalHamiltonian {
  const Crystal& crystal;
  const LocalPotential& potential;
  double cutoff_ry = 0.0;
  EigensolverOptions eigensolver;
};

/// Lowest eigenstates of H at one k on its own sphere, in a gauge that depends on H alone.
DenseStates states_at(const LocalHamiltonian& hamiltonian, const Vec3& k, int n_bands,
                      GwKernels& kernels, StepClock& clock) {
  const auto& [crystal, potential, cutoff_ry, eigensolver] = hamiltonian;
  DenseStates states{
      .sphere = make_g_sphere(crystal.bdot, k, cutoff_ry), .energy_ry = {}, .coefficients = {}};
  const GSphere& sphere = states.sphere;
  const std::int64_t n = sphere.size();
  if (n < n_bands)
    throw InvalidInput("meanfield.bands = " + std::to_string(n_bands) + " but the cut-off of " +
                       std::to_string(cutoff_ry) + " Ry gives only " + std::to_string(n) +
                       " plane waves; raise meanfield.cutoff_ry");
  if (eigensolver.method == Eigensolver::kOperator) {
    LowestStates lowest = operator_states(local_parts(crystal, k, sphere.g, potential.values()),
                                          sphere.g, n_bands, eigensolver, kernels.hamiltonian());
    states.energy_ry = std::move(lowest.energy_ry);
    states.coefficients = std::move(lowest.coefficients);
    states.largest_residual_ry = lowest.largest_residual_ry;
    clock.step("eigensolver");
    return states;
  }
  // V differs from 0 at a few dozen G: each is found once and scattered, instead of n² structure
  // factors.
  const GIndex index(sphere.g);
  const PotentialElements& elements = potential.values();
  // Every thread is the first to touch the rows it fills: gigabytes set to 0 by one thread would
  // take as long as the rest.
  const std::unique_ptr<double[]> storage(new double[static_cast<std::size_t>(2 * n * n)]);
  auto* const h = reinterpret_cast<Cplx*>(storage.get());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    std::fill_n(h + i * n, n, Cplx{});
    for (const auto& [difference, value] : elements) {
      const std::int32_t j = index.find(sphere.g[static_cast<std::size_t>(i)] - difference);
      if (j >= 0) h[i * n + j] = value;
    }
    h[i * n + i] += sphere.kinetic_ry[static_cast<std::size_t>(i)];
  }
  states.energy_ry.resize(static_cast<std::size_t>(n_bands));
  states.coefficients.resize(static_cast<std::size_t>(n_bands * n));
  clock.step("hamiltonian");
  kernels.dense().eigen_hermitian({h, {n, n}}, view<double>(states.energy_ry, n_bands),
                                  view<Cplx>(states.coefficients, n_bands, n));
  clock.step("diagonalisation");
  fix_gauge(sphere.g, states.energy_ry, kDegenerateStates_ry, states.coefficients);
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
    for (auto& c : at.coefficients) c.resize(kept * at.g.size());
  w.n_bands = n;
}

}  // namespace

PotentialElements empirical_potential(const EmpiricalCrystal& crystal) {
  return potential_of(crystal).values();
}

StatesAt empirical_states(const EmpiricalCrystal& wanted, const Crystal& crystal,
                          GwKernels& kernels) {
  auto potential = std::make_shared<const LocalPotential>(potential_of(wanted));
  return [potential, crystal, cutoff = wanted.wavefunction_cutoff_ry,
          eigensolver = wanted.eigensolver, &kernels](const Vec3& k, int /*spin*/, int n_bands) {
    StepClock unwatched(nullptr);
    return states_at({crystal, *potential, cutoff, eigensolver}, k, n_bands, kernels, unwatched);
  };
}

MeanField empirical_mean_field(const EmpiricalCrystal& wanted, GwKernels& kernels,
                               Progress& progress, StepTimes* times) {
  const FormFactors& factors = form_factors(wanted.name);
  const double a = lattice_of(wanted, factors);
  const Structure structure = make_structure(wanted, a);
  MeanFieldHeader header;
  header.title = "WFN-Complex";
  header.crystal = make_crystal(structure, factors, a, find_symmetries(structure, wanted));
  header.density_cutoff_ry = 4.0 * wanted.wavefunction_cutoff_ry;
  header.g = make_g_sphere(header.crystal.bdot, {}, header.density_cutoff_ry).g;
  const IVec3 extent = component_extent(header.g);
  for (int i = 0; i < 3; ++i) header.fft_grid[i] = good_fft_size(2 * extent[i] + 1);
  const LocalPotential potential = potential_of(wanted);
  const int n_occupied =
      2 * static_cast<int>(structure.position.size());  // 4 electrons an atom, 2 a band

  // One band more than wanted shows whether the last one belongs to a multiplet that would be cut.
  bool one_more = true;
  for (int i = 0; i < wanted.k_grid[0] && one_more; ++i)
    for (int j = 0; j < wanted.k_grid[1]; ++j)
      for (int k = 0; k < wanted.k_grid[2]; ++k)
        one_more =
            one_more && make_g_sphere(header.crystal.bdot,
                                      {1.0 * i / wanted.k_grid[0], 1.0 * j / wanted.k_grid[1],
                                       1.0 * k / wanted.k_grid[2]},
                                      wanted.wavefunction_cutoff_ry)
                                .size() > wanted.bands;
  const LocalHamiltonian hamiltonian{header.crystal, potential, wanted.wavefunction_cutoff_ry,
                                     wanted.eigensolver};
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
  field.q0 = wanted.q0;
  return field;
}

}  // namespace quasi::gw
