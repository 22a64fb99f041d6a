// Compares first orders of the density and of its V_xc with displaced crystals, with a supercell
// and with closed forms.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/folded_cell.hpp"
#include "tests/gw/support/planned_deck.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/xc/local_density.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/response/density_response.hpp"
#include "workers/gw/solver/self_energy/exchange_correlation.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

const Vec3 kDirection{0.6, 0.0, 0.8};

/// Returns ρ(G) of a crystal with the given V(G), with all products of plane waves summed one by
/// one.
std::vector<Cplx> literal_density(const MeanField& field, const PotentialElements& potential,
                                  GwKernels& kernels) {
  const std::vector<IVec3>& list = field.density.header.g;
  const GIndex index(list);
  std::vector<Cplx> density(list.size());
  for (const ZonePoint& point : field.zone.points()) {
    const std::vector<IVec3> g =
        make_g_sphere(field.crystal().bdot, point.k, field.waves.wavefunction_cutoff_ry).g;
    const GIndex at(g);
    const auto n = static_cast<std::int64_t>(g.size());
    std::vector<Cplx> h(g.size() * g.size()), states(g.size() * 4);
    std::vector<double> energy_ry(4);
    for (std::size_t i = 0; i < g.size(); ++i) {
      for (const auto& [difference, value] : potential)
        if (const std::int32_t j = at.find(g[i] - difference); j >= 0)
          h[i * g.size() + static_cast<std::size_t>(j)] = value;
      const Vec3 wave = point.k + to_real(g[i]);
      h[i * g.size() + i] += metric_dot(field.crystal().bdot, wave, wave);
    }
    kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n), view<double>(energy_ry, 4),
                                    view<Cplx>(states, 4, n));
    for (std::size_t v = 0; v < 4; ++v)
      for (std::size_t i = 0; i < g.size(); ++i)
        for (std::size_t j = 0; j < g.size(); ++j)
          density[static_cast<std::size_t>(index.find(g[i] - g[j]))] +=
              2.0 / static_cast<double>(field.zone.size()) * std::conj(states[v * g.size() + j]) *
              states[v * g.size() + i];
  }
  return density;
}

// Central differences of h = 0.01 Bohr differ from the derivative by h² times a third derivative,
// here 3e-5; four thirds of those of h/2 less a third of those of h leave 1e-8.
TEST(DensityResponse, IsThatOfADisplacedCrystal) {
  const EmpiricalCrystal crystal = test::chain_of_cells();
  SmallSilicon cell(crystal);
  const auto density_at = [&](double step_bohr) {
    return literal_density(
        cell.field, displaced_potential(crystal, cell.field.crystal(), 0, step_bohr * kDirection),
        *cell.kernels);
  };
  const std::vector<Cplx> up = density_at(0.01), down = density_at(-0.01),
                          half_up = density_at(0.005), half_down = density_at(-0.005),
                          rest = density_at(0.0);
  const auto found =
      density_response({atom_displacement(crystal, cell.field.crystal(), 0, kDirection)},
                       cell.field, empirical_states(crystal, cell.field.crystal(), *cell.kernels));
  EXPECT_EQ(found.g, cell.field.density.header.g);
  double largest = 0.0;
  for (std::size_t i = 0; i < up.size(); ++i) {
    EXPECT_LT(std::abs(rest[i] - cell.field.density.values[0][i]), 1e-10);
    const Cplx difference =
        4.0 / 3.0 * (half_up[i] - half_down[i]) / 0.01 - (up[i] - down[i]) / 0.06;
    EXPECT_LT(std::abs(found.change[0][i] - difference), 2e-8)
        << i << found.change[0][i] << difference;
    largest = std::max(largest, std::abs(found.change[0][i]));
  }
  EXPECT_GT(largest, 0.1);
}

// The displacement e e^{iq·R} of the cell is the sum Σ_R e^{iq·R} over the images of the atom in
// a supercell of three cells. Its density counts the electrons of three cells. Rounding: 1e-11.
TEST(DensityResponse, AtAWaveVectorIsThatOfASupercell) {
  const EmpiricalCrystal crystal = test::chain_of_cells();
  EmpiricalCrystal large = crystal;
  large.repeats = crystal.k_grid;
  large.k_grid = {1, 1, 1};
  large.bands = 20;
  SmallSilicon cell(crystal);
  SilentProgress silent;
  const MeanField supercell = empirical_mean_field(large, *cell.kernels, silent);
  std::vector<Perturbation> images;
  for (int image = 0; image < 3; ++image)
    images.push_back(atom_displacement(large, supercell.crystal(), 2 * image + 1, kDirection,
                                       {.p = {}, .all_lengths = true}));
  const auto of_images = density_response(
      images, supercell, empirical_states(large, supercell.crystal(), *cell.kernels));
  const GIndex index(supercell.density.header.g);
  for (int turn = 1; turn < 3; ++turn) {
    const Vec3 q{turn / 3.0, 0.0, 0.0};
    const auto found = density_response(
        {atom_displacement(crystal, cell.field.crystal(), 1, kDirection,
                           {.p = q, .all_lengths = true})},
        cell.field, empirical_states(crystal, cell.field.crystal(), *cell.kernels));
    double largest = 0.0;
    for (std::size_t i = 0; i < found.g.size(); ++i) {
      const IVec3 g = found.g[i];
      const std::int32_t at = index.find({3 * g[0] + turn, g[1], g[2]});
      ASSERT_GE(at, 0);
      Cplx sum;
      for (int image = 0; image < 3; ++image)
        sum += std::polar(1.0, 2.0 * kPi * turn * image / 3.0) *
               of_images.change[static_cast<std::size_t>(image)][static_cast<std::size_t>(at)];
      EXPECT_LT(std::abs(3.0 * found.change[0][i] - sum), 1e-11) << turn << ' ' << i;
      largest = std::max(largest, std::abs(sum));
    }
    EXPECT_GT(largest, 0.1);
  }
}

/// Correlation energy of Perdew and Wang for equal spins, Hartree: equation 10 and table I of
/// [perdew1992].
double perdew_wang(double r_s) {
  const double root = std::sqrt(r_s),
               series = 7.5957 * root + 3.5876 * r_s + 1.6382 * r_s * root + 0.49294 * r_s * r_s;
  return -2.0 * 0.031091 * (1.0 + 0.21370 * r_s) * std::log(1.0 + 1.0 / (2.0 * 0.031091 * series));
}

/// Returns V_xc of a uniform density, Ry: the exchange −(3n/π)^(1/3) Hartree and the correlation
/// ε_c − (r_s/3) dε_c/dr_s.
double uniform_potential_ry(double density) {
  const double r_s = std::cbrt(3.0 / (4.0 * kPi * density)), step = 1e-4 * r_s;
  const double slope = (perdew_wang(r_s + step) - perdew_wang(r_s - step)) / (2.0 * step);
  return 2.0 * (-std::cbrt(3.0 * density / kPi) + perdew_wang(r_s) - r_s / 3.0 * slope);
}

// libxc has the constants of the paper with two digits more, which changes 1e-6 of V_c.
TEST(LocalDensity, OfAUniformGasHasTheClosedForm) {
  SmallSilicon silicon;
  for (const double electrons : {0.5, 8.0, 100.0}) {
    PlaneWaveField density = silicon.field.density;
    std::fill(density.values[0].begin(), density.values[0].end(), Cplx{});
    const GIndex index(density.header.g);
    const auto zero = static_cast<std::size_t>(index.find({0, 0, 0}));
    density.values[0][zero] = electrons;
    const double n = electrons / silicon.field.crystal().volume_bohr3;
    const LocalDensity local(density);
    const PlaneWaveField potential = local.potential();
    std::vector<Cplx> change(density.header.g.size());
    change[zero] = 1.0;
    const std::vector<Cplx> changed = local.potential_change(density.header.g, change);
    const double step = 1e-3 * n,
                 slope = (uniform_potential_ry(n + step) - uniform_potential_ry(n - step)) /
                         (2.0 * step);
    for (std::size_t i = 0; i < potential.values[0].size(); ++i) {
      const double expected = i == zero ? uniform_potential_ry(n) : 0.0;
      EXPECT_LT(std::abs(potential.values[0][i] - expected), 2e-6) << electrons << ' ' << i;
      const double expected_change = i == zero ? slope / silicon.field.crystal().volume_bohr3 : 0.0;
      EXPECT_LT(std::abs(changed[i] - expected_change), 1e-4 * std::abs(slope) / 270.0);
    }
  }
}

// The change of V_xc of silicon's density by the derivative against its central difference, for a
// change without symmetry. The difference errs by the square of the step, 1e-8 of the change.
TEST(LocalDensity, ChangeIsThatOfTheDensity) {
  SmallSilicon silicon;
  const PlaneWaveField& density = silicon.field.density;
  const GIndex index(density.header.g);
  std::vector<Cplx> change(density.header.g.size());
  for (std::size_t i = 0; i < change.size(); ++i) {
    const IVec3 g = density.header.g[i];
    const auto opposite = static_cast<std::size_t>(index.find({-g[0], -g[1], -g[2]}));
    const auto at = static_cast<double>(i);
    const Cplx value = std::polar(1.0 / (1.0 + at), at);
    change[i] += value;
    change[opposite] += std::conj(value);
  }
  const auto potential_at = [&](double step) {
    PlaneWaveField moved = density;
    for (std::size_t i = 0; i < change.size(); ++i) moved.values[0][i] += step * change[i];
    return LocalDensity(moved).potential().values[0];
  };
  const double step = 1e-4;
  const std::vector<Cplx> up = potential_at(step), down = potential_at(-step),
                          found = LocalDensity(density).potential_change(density.header.g, change);
  double largest = 0.0;
  for (std::size_t i = 0; i < up.size(); ++i) {
    EXPECT_LT(std::abs(found[i] - (up[i] - down[i]) / (2.0 * step)), 1e-7) << i;
    largest = std::max(largest, std::abs(found[i]));
  }
  EXPECT_GT(largest, 0.01);
}

// The elements of all occupied states add up to ∫ n V_xc = Σ_G ρ*(G) V_xc(G), about −11 eV
// for each of eight electrons.
TEST(LocalDensity, ElementsOfOccupiedStatesAddUpToTheIntegral) {
  SmallSilicon silicon;
  const Wavefunctions& waves = silicon.field.waves;
  SigmaOptions options{.band_min = 1, .band_max = 4};
  for (int ik = 0; ik < waves.n_k(); ++ik) options.kpoints.push_back(ik);
  const ExchangeCorrelation vxc = exchange_correlation(
      MeanFieldOptions{.empirical = true, .crystal = {}, .local_density = true}, silicon.field,
      options, *silicon.kernels, false);
  const std::vector<std::vector<double>> diagonal_ev = vxc.diagonal_ev();
  double sum_ev = 0.0;
  for (std::size_t ik = 0; ik < diagonal_ev.size(); ++ik)
    for (const double element_ev : diagonal_ev[ik]) sum_ev += 2.0 * waves.weight[ik] * element_ev;
  const PlaneWaveField potential = LocalDensity(silicon.field.density).potential();
  Cplx integral;
  for (std::size_t i = 0; i < potential.values[0].size(); ++i)
    integral += std::conj(silicon.field.density.values[0][i]) * potential.values[0][i];
  EXPECT_NEAR(sum_ev, kRydberg_ev * integral.real(), 1e-9);
  EXPECT_LT(sum_ev, -50.0);
}

/// Returns the elements of −∂V_xc/∂x between the outer bands of one k: those of a rigid
/// shift.
std::vector<Cplx> elements_of_slope(const Calculation& run, int ik, std::size_t axis,
                                    GwKernels& kernels) {
  PlaneWaveField slope = LocalDensity(run.field.density).potential();
  const Crystal& crystal = run.field.crystal();
  for (std::size_t i = 0; i < slope.header.g.size(); ++i) {
    double k_per_bohr = 0.0;
    for (std::size_t j = 0; j < 3; ++j)
      k_per_bohr += crystal.blat_per_bohr * slope.header.g[i][j] * crystal.bvec[j][axis];
    slope.values[0][i] *= Cplx(0.0, -k_per_bohr);
  }
  return potential_matrix(run.field, slope, {ik, 0, 0, run.displacements->band_max}, kernels);
}

// The couplings of GW have all three parts with V_xc of the density. A rigid shift moves V_xc as a
// whole, up to the error of its grid of points, 1e-7 for elements of 0.06 Ry/Bohr. The elements
// obey g_ml(k+q, −q) = conj g_lm(k, q) up to rounding.
TEST(LocalDensity, GivesTheCouplingsOfGw) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Calculation run = run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\n"
                 "k_grid = [3, 1, 1]\nbands = 14\nvxc = \"lda\"\n[epsilon]\ncutoff_ry = 3.0\n"
                 "[sigma]\nband_max = 5\n[perturbation]\n"
                 "q = [[0, 0, 0], [0.3333, 0, 0], [-0.3333, 0, 0]]\n",
                 {}, "test", "."),
      *kernels, std::int64_t{1} << 30, silent);
  ASSERT_TRUE(run.displacements);
  ASSERT_EQ(run.wave_vectors.size(), 2u);
  EXPECT_TRUE(run.quasiparticles.front().vxc_ev);
  const auto n = static_cast<std::size_t>(run.displacements->band_max);
  const WaveVectorElements &forth = run.wave_vectors[0], &back = run.wave_vectors[1];
  double largest = 0.0, change = 0.0, shift = 0.0;
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const ElementsAtK &a = run.displacements->at[axis][k],
                        &b = run.displacements->at[3 + axis][k];
      const auto slope = elements_of_slope(run, run.displacements->k_index[k], axis, *kernels);
      for (std::size_t i = 0; i < n * n; ++i) {
        EXPECT_LT(std::abs(a.vxc[i] + b.vxc[i] - slope[i]), 5e-7) << k << ' ' << axis;
        shift = std::max(shift, std::abs(slope[i]));
      }
    }
  for (std::size_t d = 0; d < 6; ++d)
    for (std::size_t k = 0; k < 3; ++k) {
      const ElementsAtK& at = forth.elements.at[d][k];
      const ElementsAtK& adjoint =
          back.elements.at[d][test::position_of_ket(run, back, forth.k_plus_q[k])];
      for (std::size_t l = 0; l < n; ++l)
        for (std::size_t m = 0; m < n; ++m) {
          const std::size_t i = l * n + m;
          EXPECT_LT(std::abs(at.vxc[i] - std::conj(adjoint.vxc[m * n + l])), 1e-11);
          largest = std::max(largest, std::abs(at.vxc[i]));
          change = std::max(change, std::abs(at.gw(i) - at.mean_field[i]));
        }
    }
  EXPECT_GT(shift, 0.05);
  EXPECT_GT(largest, 0.02);
  EXPECT_GT(change, 0.005);
}

TEST(LocalDensity, RefusesNegativeAndPolarisedDensities) {
  SmallSilicon silicon;
  PlaneWaveField density = silicon.field.density;
  density.values.push_back(density.values.front());
  EXPECT_THROW(LocalDensity{density}, InvalidInput);
  density.values.resize(1);
  for (Cplx& value : density.values[0]) value = -value;
  EXPECT_THROW(LocalDensity{density}, InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
