// Tests the first order of the energies in phonon modes: their units, energies of crystals with a
// frozen mode, the choice of basis of degenerate modes, and the files of modes.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/gw/support/phonon_mode_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/input/perturbation/phonon_modes_file.hpp"
#include "workers/gw/output/mode_results.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"

namespace quasi::gw {
namespace {

using quasi::test::TemporaryDirectory;
using test::GalliumArsenideModes;

constexpr std::array<double, 2> kStrengths_ry_bohr2{0.0125, 0.0223};

const std::string kDeck =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nk_grid = [2, 2, 2]\n"
    "bands = 18\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nmethod = \"hl-gpp\"\nband_max = 5\n"
    "[perturbation]\nmodes = \"modes\"\n";

/// Runs the deck with the file "modes" of the directory.
Calculation run_in(const TemporaryDirectory& directory, const std::string& deck = kDeck) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(deck, {}, "test", directory.path()), *kernels,
                         std::int64_t{1} << 30, silent);
}

Calculation run_with(const GalliumArsenideModes& modes) {
  const TemporaryDirectory directory;
  modes.write_text(directory.path() / "modes");
  return run_in(directory);
}

/// √(ħ/(2Mω)) in Bohr by atomic units: ħ²/(2m) = 1 Ry Bohr². An amu has 1822.888486 electron
/// masses.
double amplitude_bohr(double mass_amu, double energy_ev) {
  return std::sqrt(kRydberg_ev / (1822.888486 * mass_amu * energy_ev));
}

/// Adds the spin–orbit terms of the atoms at τ_a + u_a to H(k).
void add_displaced_terms(const MeanField& field, const EmpiricalCrystal& crystal, int ik,
                         const std::vector<Vec3>& u, std::vector<Cplx>& h) {
  const auto k = static_cast<std::size_t>(ik);
  const auto add = [&](int atom, const Vec3& at, double factor) {
    std::vector<Cplx> term(h.size());
    displaced_spin_orbit(crystal, field.crystal(), atom, at)
        ->add_to(field.waves.k[k], field.waves.waves[k].g, term.data());
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += factor * term[i];
  };
  add(0, {}, 1.0 - static_cast<double>(u.size()));
  for (std::size_t atom = 0; atom < u.size(); ++atom) add(static_cast<int>(atom), u[atom], 1.0);
}

/// Lowest eigenvalues of H(k) with the atoms at τ_a + u_a, Ry.
std::vector<double> frozen_energies_ry(const MeanField& field, int ik, const std::vector<Vec3>& u) {
  EmpiricalCrystal crystal;
  crystal.name = "gaas";
  if (field.n_spinor() == 2) crystal.spin_orbit_ry_bohr2 = kStrengths_ry_bohr2;
  PotentialElements potential = empirical_potential(crystal);
  const PotentialElements rest = potential;
  for (std::size_t atom = 0; atom < u.size(); ++atom) {
    const auto moved =
        displaced_potential(crystal, field.crystal(), static_cast<int>(atom), u[atom]);
    for (std::size_t i = 0; i < rest.size(); ++i)
      potential[i].second += moved[i].second - rest[i].second;
  }
  const auto& g = field.waves.waves[static_cast<std::size_t>(ik)].g;
  const std::size_t order = g.size() * static_cast<std::size_t>(field.n_spinor());
  const auto n = static_cast<std::int64_t>(order);
  const GIndex index(g);
  std::vector<Cplx> h(order * order), vectors(h.size());
  for (std::size_t row = 0; row < order; ++row) {
    const std::size_t i = row % g.size();
    const Vec3 at = field.waves.k[static_cast<std::size_t>(ik)] + to_real(g[i]);
    h[row * order + row] += metric_dot(field.crystal().bdot, at, at);
    for (const auto& [difference, value] : potential)
      if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
        h[row * order + row - i + static_cast<std::size_t>(j)] += value;
  }
  if (field.n_spinor() == 2) add_displaced_terms(field, crystal, ik, u, h);
  std::vector<double> energies(order);
  make_gw_kernels(find_device("cpu"))
      ->dense()
      .eigen_hermitian(view<const Cplx>(h, n, n), view<double>(energies, n),
                       view<Cplx>(vectors, n, n));
  return energies;
}

// Atoms frozen in the zero-point pattern of an optical mode shift the sum of the energies of each
// multiplet by the trace of g. The amplitude of the pattern comes from atomic units. Central
// differences of 0.01 of the pattern err by 1e-7 eV.
TEST(PhononModes, FrozenModesShiftTheEnergies) {
  const GalliumArsenideModes modes;
  const Calculation run = run_with(modes);
  ASSERT_TRUE(run.phonons);
  const auto crystal_order = run.field.crystal().atoms[0].atomic_number == 31 ? 0u : 1u;
  constexpr double kPart = 0.01;
  double largest = 0.0;
  for (std::size_t m = 3; m < 6; ++m)
    for (std::size_t k = 0; k < run.displacements->k_index.size(); ++k) {
      std::vector<Vec3> plus(2), minus(2);
      for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t i = 0; i < 3; ++i) {
          const double u = kPart * amplitude_bohr(modes.mass_amu[a], 0.0333) *
                           modes.eigenvector[m][3 * a + i].real();
          plus[a ^ crystal_order][i] = u;
          minus[a ^ crystal_order][i] = -u;
        }
      const int ik = run.displacements->k_index[k];
      const auto up = frozen_energies_ry(run.field, ik, plus),
                 down = frozen_energies_ry(run.field, ik, minus);
      const auto n = static_cast<std::size_t>(run.displacements->band_max);
      for (const auto& [first, end] : multiplets(run.field.waves, 0, ik, 0, static_cast<int>(n))) {
        double difference = 0.0, trace = 0.0;
        for (auto b = static_cast<std::size_t>(first); b < static_cast<std::size_t>(end); ++b) {
          difference += (up[b] - down[b]) / (2.0 * kPart) * kRydberg_ev;
          trace += run.phonons->at[m][k].mean_field_ev[b * n + b].real();
        }
        EXPECT_NEAR(trace, difference, 1e-6) << "mode " << m << " k " << k << " band " << first;
        largest = std::max(largest, std::abs(difference));
      }
    }
  EXPECT_GT(largest, 0.01);
}

/// The deck with all plane waves as bands at Γ, and all but one at L.
const std::string kAllBands =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 6.75\nk_grid = [2, 1, 1]\n"
    "bands = 89\n[epsilon]\ncutoff_ry = 1.0\n[sigma]\nmethod = \"cohsex\"\nband_max = 8\n"
    "[perturbation]\nmodes = \"modes\"\n";
/// Deck of spinors at Γ, whose bands are all states of the plane waves.
const std::string kAllSpinors =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 3.0\nbands = 54\n"
    "spin_orbit_ry_bohr2 = [0.0125, 0.0223]\n[epsilon]\ncutoff_ry = 1.0\n[sigma]\n"
    "method = \"cohsex\"\nband_max = 16\n[perturbation]\nmodes = \"modes\"\n";

/// [E(u) + E(−u) − 2E(0)]/2 of every band for the zero-point pattern u of a mode, eV.
/// Richardson's rule of patterns of 0.1 and 0.2 leaves 1e-7 eV.
std::vector<double> second_differences_ev(const Calculation& run, std::size_t mode, int ik) {
  const auto energies = [&](double part) {
    std::vector<Vec3> u(2);
    for (std::size_t a = 0; a < 2; ++a)
      for (std::size_t i = 0; i < 3; ++i)
        u[a][i] = part * run.phonons->modes.displacement_bohr(mode, a, i).real();
    return frozen_energies_ry(run.field, ik, u);
  };
  std::vector<double> second = energies(0.0);
  const auto up = energies(0.1), down = energies(-0.1), up2 = energies(0.2), down2 = energies(-0.2);
  for (std::size_t b = 0; b < second.size(); ++b) {
    const double fine = (up[b] + down[b] - 2.0 * second[b]) / 0.02,
                 coarse = (up2[b] + down2[b] - 2.0 * second[b]) / 0.08;
    second[b] = (4.0 * fine - coarse) / 3.0 * kRydberg_ev;
  }
  return second;
}

// Form factors belong to rigid ions: the second difference of the energies of a crystal with a
// frozen mode is twice the shift, averaged over each multiplet. L is less symmetric than Γ, and
// the modes along x, y and z shift its energies alike only in their sum. 1e-6 eV; shifts are 1e-2
// eV.
void expect_second_order(const std::string& deck) {
  const GalliumArsenideModes modes;
  const TemporaryDirectory directory;
  modes.write_text(directory.path() / "modes");
  const Calculation run = run_in(directory, deck);
  ASSERT_TRUE(run.phonons);
  double fan = 0.0, debye_waller = 0.0;
  for (std::size_t m = 3; m < 6; ++m)
    for (std::size_t k = 0; k < run.displacements->k_index.size(); ++k) {
      const int ik = run.displacements->k_index[k];
      const std::vector<double> second = second_differences_ev(run, m, ik);
      const ZeroPointShifts& found = run.phonons->shifts[m][k];
      for (const auto& [first, end] :
           multiplets(run.field.waves, 0, ik, 0, run.displacements->band_max)) {
        double expected = 0.0;
        for (auto b = static_cast<std::size_t>(first); b < static_cast<std::size_t>(end); ++b)
          expected += second[b] / (end - first);
        const auto b = static_cast<std::size_t>(first);
        EXPECT_NEAR(found.fan_ev[b] + found.debye_waller_ev[b], expected, 1e-6)
            << m << " " << k << " " << first;
        fan = std::max(fan, std::abs(found.fan_ev[b]));
        debye_waller = std::max(debye_waller, std::abs(found.debye_waller_ev[b]));
      }
    }
  EXPECT_GT(fan, 1e-3);
  EXPECT_GT(debye_waller, 1e-3);
}
TEST(PhononModes, FrozenModesShiftTheEnergiesInSecondOrder) { expect_second_order(kAllBands); }
// Spinors obey the same law, because the spin–orbit term belongs to the rigid ion, too.
TEST(PhononModes, FrozenModesShiftTheEnergiesOfSpinorsInSecondOrder) {
  expect_second_order(kAllSpinors);
}

// Each element is Σ u g of the Cartesian matrices, at both levels. 1e-8 eV: the energy units
// differ by 4e-8 of themselves.
TEST(PhononModes, ElementsAreThoseOfTheAtomsTransformed) {
  const GalliumArsenideModes modes;
  const Calculation run = run_with(modes);
  const DisplacementElements& cartesian = *run.displacements;
  const bool same_order = run.field.crystal().atoms[0].atomic_number == 31;
  const std::size_t mode = 4, l = 1, n = static_cast<std::size_t>(cartesian.band_max);
  for (std::size_t k = 0; k < cartesian.k_index.size(); ++k)
    for (std::size_t m = 0; m < n; ++m) {
      Cplx g, sigma;
      for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const ElementsAtK& at = cartesian.at[3 * (same_order ? a : 1 - a) + axis][k];
          const Cplx u =
              amplitude_bohr(modes.mass_amu[a], 0.0333) * modes.eigenvector[mode][3 * a + axis];
          g += u * at.mean_field[l * n + m] * kRydberg_ev;
          sigma += u * 0.5 * (at.sigma_bra[l * n + m] + at.sigma_ket[l * n + m]) * kRydberg_ev;
        }
      EXPECT_LT(std::abs(run.phonons->at[mode][k].mean_field_ev[l * n + m] - g), 1e-8);
      EXPECT_LT(std::abs(run.phonons->at[mode][k].sigma_ev[l * n + m] - sigma), 1e-8);
    }
}

// The sizes and ratios depend neither on the basis of degenerate modes, nor on the order of atoms,
// the lattice vectors, the origin, inversion, or the unit of the file. 1e-9 eV: digits of the
// units.
TEST(PhononModes, CouplingsDoNotDependOnTheBasis) {
  const Calculation run = run_with(GalliumArsenideModes{});
  GalliumArsenideModes turned;
  const double c = std::cos(0.4), s = std::sin(0.4);
  for (std::size_t i = 0; i < 6; ++i) {
    const Cplx x = turned.eigenvector[3][i], y = turned.eigenvector[4][i];
    turned.eigenvector[3][i] = c * x + Cplx(0.0, s) * y;
    turned.eigenvector[4][i] = Cplx(0.0, s) * x + c * y;
    turned.eigenvector[5][i] *= std::polar(1.0, 1.1);
  }
  std::swap(turned.element[0], turned.element[1]);
  std::swap(turned.mass_amu[0], turned.mass_amu[1]);
  for (auto& e : turned.eigenvector)
    for (std::size_t i = 0; i < 3; ++i) std::swap(e[i], e[3 + i]);
  // Lattice vectors a1, a2 - a1, a3, a shifted origin, and As where the crystal has Ga.
  turned.lattice[1] = {.5, -.5, 0};
  turned.position = {{.1 + .5, .1 + .25, .1 + .25}, {.1, .1, .1}};
  for (double& energy : turned.energy_mev) energy *= 8.065543937;
  turned.unit = "cm-1";
  const Calculation other = run_with(turned);
  ASSERT_EQ(run.phonons->couplings.size(), other.phonons->couplings.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < run.phonons->couplings.size(); ++i) {
    const ModeCoupling &a = run.phonons->couplings[i], &b = other.phonons->couplings[i];
    EXPECT_NEAR(a.mean_field_ev, b.mean_field_ev, 1e-9);
    EXPECT_NEAR(a.sigma_ev, b.sigma_ev, 1e-9);
    EXPECT_NEAR(a.ratio.value_or(0.0), b.ratio.value_or(0.0), 1e-6);
    largest = std::max(largest, a.mean_field_ev);
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_GT(std::abs(other.phonons->at[3][0].mean_field_ev[7].real() -
                     run.phonons->at[3][0].mean_field_ev[7].real()),
            1e-6);
}

// The result.h5 of a thermal job holds the same modes as the text. 1e-9 eV: digits of the units.
TEST(PhononModes, AThermalResultGivesTheSameModes) {
  const TemporaryDirectory directory;
  const GalliumArsenideModes modes;
  modes.write_text(directory.path() / "text");
  modes.write_thermal(directory.path() / "result.h5", {});
  const PhononModes text = read_phonon_modes(directory.path() / "text"),
                    thermal = read_phonon_modes(directory.path() / "result.h5");
  ASSERT_EQ(text.n_modes(), 6u);
  ASSERT_EQ(thermal.n_modes(), 6u);
  for (std::size_t m = 0; m < 6; ++m) EXPECT_NEAR(text.energy_ev[m], thermal.energy_ev[m], 1e-9);
  for (std::size_t i = 0; i < 36; ++i) EXPECT_EQ(text.eigenvector[i], thermal.eigenvector[i]);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(text.lattice_bohr[i][j], thermal.lattice_bohr[i][j], 1e-9);
  for (std::size_t a = 0; a < 2; ++a) {
    EXPECT_EQ(text.atoms[a].atomic_number, thermal.atoms[a].atomic_number);
    EXPECT_EQ(text.atoms[a].mass_amu, thermal.atoms[a].mass_amu);
    EXPECT_EQ(text.atoms[a].position, thermal.atoms[a].position);
  }
}

// result.h5, summary, table and modes.dat hold the modes with their units. Rigid shifts are named
// and have no values.
TEST(PhononModes, ResultsNameRigidShifts) {
  const TemporaryDirectory directory;
  GalliumArsenideModes{}.write_text(directory.path() / "modes");
  const Calculation run = run_in(directory);
  const ModeElements& phonons = *run.phonons;
  EXPECT_EQ(phonons.modes.first_of_set, (std::vector<int>{0, 0, 0, 3, 3, 3}));
  // 33.3 meV and the mass of the cell, 144.6446 amu.
  EXPECT_NEAR(phonons.modes.cell_amplitude_bohr(3), amplitude_bohr(144.6446, 0.0333), 1e-9);
  write_result(directory.path() / "result.h5", run, std::nullopt, {});
  const H5Reader file(directory.path() / "result.h5");
  const auto n_k = static_cast<std::int64_t>(run.displacements->k_index.size()),
             n = static_cast<std::int64_t>(run.displacements->band_max);
  EXPECT_EQ(file.shape("/modes/mean_field"), (std::vector<std::int64_t>{6, n_k, n, n, 2}));
  const std::vector<double> g = file.doubles("/modes/mean_field"),
                            size = file.doubles("/modes/sigma_size");
  EXPECT_TRUE(std::isnan(g[0]));
  const std::size_t optical = static_cast<std::size_t>(3 * n_k * n * n);
  EXPECT_EQ(g[2 * (optical + 7)], 1e3 * phonons.at[3][0].mean_field_ev[7].real());
  EXPECT_TRUE(std::isnan(size[0]));
  EXPECT_EQ(size[optical], 1e3 * phonons.couplings[0].sigma_ev);
  for (const char* path : {"/modes/mean_field", "/modes/sigma", "/modes/mean_field_size"}) {
    EXPECT_EQ(file.text_attribute(path, "units"), "meV");
    EXPECT_NE(file.text_attribute(path, "description"), "");
  }
  EXPECT_EQ(file.doubles("/modes/acoustic"), (std::vector<double>{1, 1, 1, 0, 0, 0}));
  const auto summary = summary_of(run, find_device("cpu"), 1);
  EXPECT_EQ(summary.at("modes").at("sets").size(), 2u);
  const std::string table = table_of(summary);
  EXPECT_NE(table.find("modes 1,2,3 are rigid shifts"), std::string::npos) << table;
  EXPECT_NE(table.find(" 4,5,6        33.300"), std::string::npos) << table;
  write_mode_table(directory.path() / "modes.dat", phonons, *run.displacements, run.field);
  std::ifstream in(directory.path() / "modes.dat");
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) lines += line[0] == '#' ? 0 : 1;
  EXPECT_EQ(lines, phonons.couplings.size());
}

}  // namespace
}  // namespace quasi::gw
