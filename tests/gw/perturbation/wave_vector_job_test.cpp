// Jobs with perturbation.q: laws of the elements, modes at q, files and refusals.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/gw/support/phonon_mode_files.hpp"
#include "tests/gw/support/planned_deck.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/input/perturbation/phonon_modes_file.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/output/wave_vector_results.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

/// 1e-8 eV/Bohr.
constexpr double kVanishing_ry = 1e-8 / kRydberg_ev;

const std::string kChain =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nk_grid = [3, 1, 1]\n"
    "bands = 14\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 5\n";
/// Deck of the chain with spin–orbit coupling, whose states are spinors.
const std::string kCoupledChain =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 4.0\nk_grid = [3, 1, 1]\n"
    "spin_orbit_ry_bohr2 = [0.0125, 0.0223]\nbands = 22\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\n"
    "band_max = 10\n";

Calculation run_deck(const std::string& deck, const std::filesystem::path& directory = ".") {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(deck, {}, "test", directory), *kernels, std::int64_t{1} << 30,
                         silent);
}

/// Returns the message with which a job of the chain is refused; empty if it is planned.
std::string refusal_of(const std::string& table, const std::filesystem::path& directory) {
  return test::refusal_of_deck(kChain + "[perturbation]\n" + table, directory);
}

double norm(const std::vector<Cplx>& matrix) {
  double sum = 0.0;
  for (const Cplx& element : matrix) sum += std::norm(element);
  return std::sqrt(sum);
}

// g_ml(k+q, −q) = conj g_lm(k, q), with the energies of bra and ket exchanged. Time reversal
// gives the same sizes for (−k, −q). The elements are those of GaAs, where −k is no image
// of k.
void expect_hermitian_and_reversible(const std::string& chain) {
  const Calculation run =
      run_deck(chain + "[perturbation]\nq = [[0.3333, 0, 0], [-0.3333, 0, 0]]\n");
  EXPECT_FALSE(run.displacements);
  ASSERT_EQ(run.wave_vectors.size(), 2u);
  const WaveVectorElements &forth = run.wave_vectors[0], &back = run.wave_vectors[1];
  EXPECT_DOUBLE_EQ(forth.q[0], 1.0 / 3.0);
  ASSERT_EQ(forth.elements.k_index.size(), 3u);
  const auto n = static_cast<std::size_t>(forth.elements.band_max);
  double largest = 0.0, energies = 0.0;
  for (std::size_t d = 0; d < 6; ++d)
    for (std::size_t k = 0; k < 3; ++k) {
      const ElementsAtK& at = forth.elements.at[d][k];
      const ElementsAtK& adjoint =
          back.elements.at[d][test::position_of_ket(run, back, forth.k_plus_q[k])];
      for (std::size_t l = 0; l < n; ++l)
        for (std::size_t m = 0; m < n; ++m) {
          const std::size_t i = l * n + m, j = m * n + l;
          EXPECT_LT(std::abs(at.mean_field[i] - std::conj(adjoint.mean_field[j])), 1e-12);
          EXPECT_LT(std::abs(at.sigma_bra[i] - std::conj(adjoint.sigma_ket[j])), 1e-12);
          EXPECT_LT(std::abs(at.sigma_ket[i] - std::conj(adjoint.sigma_bra[j])), 1e-12);
          largest = std::max(largest, std::abs(at.sigma(i)));
          energies = std::max(energies, std::abs(at.sigma_bra[i] - at.sigma_ket[i]));
        }
      const Vec3 ket = run.field.waves.k[static_cast<std::size_t>(forth.elements.k_index[k])];
      const ElementsAtK& reversed =
          back.elements.at[d][test::position_of_ket(run, back, Vec3{} - ket)];
      EXPECT_NEAR(norm(at.mean_field), norm(reversed.mean_field), kVanishing_ry);
      EXPECT_NEAR(norm(at.sigma_bra), norm(reversed.sigma_bra), kVanishing_ry);
      EXPECT_NEAR(norm(at.sigma_ket), norm(reversed.sigma_ket), kVanishing_ry);
    }
  EXPECT_GT(largest, 0.01);
  EXPECT_GT(energies, 1e-4);
}
TEST(WaveVectorJob, ElementsAreHermitianAndReversible) { expect_hermitian_and_reversible(kChain); }
TEST(WaveVectorJob, ElementsOfSpinorsAreHermitianAndReversible) {
  expect_hermitian_and_reversible(kCoupledChain);
}

// Each element is that of sigma_derivatives() at the energy of its bra at k + q, or of its ket at
// k. 1e-13 Ry/Bohr: rounding.
TEST(WaveVectorJob, EnergiesAreThoseOfBraAndKet) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck = parse_deck(
      kChain + "[perturbation]\natoms = [2]\ndirections = [\"z\"]\nq = [[0.3333, 0, 0]]\n", {},
      "test", ".");
  const Calculation run = run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
  const WaveVectorElements& at_q = run.wave_vectors[0];
  const CoulombInteraction coulomb(run.field.crystal(), run.field.waves.k_grid, deck.coulomb);
  // Γ and (1/3, 0, 0) have different energies; (1/3, 0, 0) and (2/3, 0, 0) have equal ones.
  const std::size_t k = 0, l = 1, m = 4, n = 5;
  SigmaOptions options = run.plan.sigma;
  options.kpoints = {at_q.elements.k_index[k]};
  options.slope = false;
  const double of_bra = run.field.waves.energy(0, at_q.elements.bra_index[k], static_cast<int>(l)),
               of_ket = run.field.waves.energy(0, options.kpoints[0], static_cast<int>(m));
  ASSERT_GT(std::abs(of_bra - of_ket), 0.1);
  const auto derivative =
      sigma_derivatives(run.field, run.epsilon, options,
                        {atom_displacement(deck.mean_field.crystal, run.field.crystal(), 1,
                                           {0.0, 0.0, 1.0}, {.p = at_q.q, .all_lengths = true})},
                        {of_bra, of_ket}, {coulomb, *kernels, silent})[0][0];
  const ElementsAtK& at = at_q.elements.at[0][k];
  EXPECT_LT(std::abs(at.sigma_bra[l * n + m] - derivative.at(0, 1, 4)), 1e-13);
  EXPECT_LT(std::abs(at.sigma_ket[l * n + m] - derivative.at(1, 1, 4)), 1e-13);
  EXPECT_GT(std::abs(derivative.at(0, 1, 4) - derivative.at(1, 1, 4)), 1e-5);
}

// Rotations of silicon turn the three points X into each other and keep Γ, so that the couplings
// of all displacements from Γ to them have one size. Spinors at two of the points are rotated by
// matrices of SU(2). 1e-8 eV/Bohr.
TEST(WaveVectorJob, RotationsTurnWaveVectors) {
  for (const std::string states :
       {"cutoff_ry = 5.0\nbands = 14\n[sigma]\nband_max = 4\n",
        "cutoff_ry = 4.0\nspin_orbit_ry_bohr2 = 0.02\nbands = 22\n[sigma]\nband_max = 8\n"}) {
    const Calculation run = run_deck(
        "[epsilon]\ncutoff_ry = 3.0\n[meanfield]\nsource = \"epm\"\nk_grid = [2, 2, 2]\n" + states +
        "kpoints = [[0, 0, 0]]\n[perturbation]\n"
        "q = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]\n");
    std::vector<double> g, sigma;
    for (const WaveVectorElements& at_q : run.wave_vectors) {
      double sum_g = 0.0, sum_sigma = 0.0;
      for (const auto& at_k : at_q.elements.at) {
        sum_g += std::pow(norm(at_k[0].mean_field), 2);
        sum_sigma += std::pow(norm(at_k[0].sigma_ket), 2);
      }
      g.push_back(std::sqrt(sum_g));
      sigma.push_back(std::sqrt(sum_sigma));
    }
    ASSERT_EQ(g.size(), 3u);
    EXPECT_GT(g[0], 0.1);
    EXPECT_GT(sigma[0], 0.01);
    for (std::size_t i = 1; i < 3; ++i) {
      EXPECT_NEAR(g[i], g[0], kVanishing_ry);
      EXPECT_NEAR(sigma[i], sigma[0], kVanishing_ry);
    }
  }
}

// Band 8 ends a multiplet at Γ, but splits a pair between Γ and L. Band 9 splits the doublet of
// bands 9 and 10 at Γ, so that the window ends with band 10.
TEST(WaveVectorJob, OuterBandsSplitNoMultipletAtKPlusQ) {
  const std::string crystal =
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 5.0\nk_grid = [4, 4, 4]\nbands = 20\n"
      "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 8\nkpoints = [[0, 0, 0]]\n";
  EXPECT_EQ(test::plan_of_deck(crystal).sigma.band_max, 8);
  EXPECT_EQ(
      test::plan_of_deck(crystal + "[perturbation]\nq = [[0.25, 0.25, 0.25]]\n").sigma.band_max,
      10);
}

/// Returns modes of GaAs at q = (1/3, 0, 0) of the chain, with unitary numbers as eigenvectors.
test::GalliumArsenideModes modes_at_third() {
  test::GalliumArsenideModes modes;
  // The lattice of the job, with both atoms where the job has them.
  modes.lattice = {{-0.5, 0.0, 0.5}, {0.0, 0.5, 0.5}, {-0.5, 0.5, 0.0}};
  modes.position = {{-0.125, -0.125, -0.125}, {0.125, 0.125, 0.125}};
  modes.further = "q = [0.33333333, 0, 0]\n";
  modes.energy_mev = {8.0, 11.0, 12.0, 30.0, 31.0, 33.0};
  for (int m = 0; m < 6; ++m)
    for (int c = 0; c < 6; ++c)
      modes.eigenvector[static_cast<std::size_t>(m)][static_cast<std::size_t>(c)] =
          std::polar(1.0 / std::sqrt(6.0), 2.0 * kPi * m * c / 6.0 + 0.3 * c * c);
  return modes;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

// The elements in a mode are those of the atoms with its zero-point displacements, and the files
// hold them.
TEST(WaveVectorJob, ModesAtQAreSumsOverAtoms) {
  const quasi::test::TemporaryDirectory directory;
  write(directory.path() / "third.toml", modes_at_third().text());
  const Calculation run =
      run_deck(kChain + "[perturbation]\nq = [[0.333333, 0, 0]]\nmodes_at_q = [\"third.toml\"]\n",
               directory.path());
  ASSERT_EQ(run.wave_vectors.size(), 1u);
  const WaveVectorElements& at_q = run.wave_vectors[0];
  ASSERT_TRUE(at_q.phonons);
  const std::size_t mode = 3, n = 25;
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<Cplx> g(n), sigma(n);
    for (std::size_t d = 0; d < 6; ++d) {
      // The length is √(ħ²/(2M ħω)) in Bohr for M in amu and ħω in eV, with
      // ħ²/(amu Bohr²) = 0.0149276198 eV.
      const double mass = d < 3 ? 69.723 : 74.9216;
      const Cplx u =
          std::sqrt(0.0149276198 / (2.0 * mass * 0.030)) * modes_at_third().eigenvector[mode][d];
      for (std::size_t i = 0; i < n; ++i) {
        g[i] += u * at_q.elements.at[d][k].mean_field[i] * kRydberg_ev;
        sigma[i] += u * at_q.elements.at[d][k].sigma(i) * kRydberg_ev;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(std::abs(at_q.phonons->at[mode][k].mean_field_ev[i] - g[i]), 0.0, 1e-7);
      EXPECT_NEAR(std::abs(at_q.phonons->at[mode][k].sigma_ev[i] - sigma[i]), 0.0, 1e-7);
    }
    EXPECT_GT(norm(g), 1e-3);
  }
  write_result(directory.path() / "result.h5", run, std::nullopt, {});
  const H5Reader file(directory.path() / "result.h5");
  EXPECT_EQ(file.shape("/modes_at_q/mean_field"), (std::vector<std::int64_t>{1, 6, 3, 5, 5, 2}));
  EXPECT_EQ(file.text_attribute("/modes_at_q/mean_field", "units"), "meV");
  EXPECT_EQ(file.text_attribute("/perturbations_at_q/sigma", "units"), "eV/Bohr");
  EXPECT_NE(file.text_attribute("/perturbations_at_q/sigma", "description"), "");
  const std::vector<double> sigma = file.doubles("/perturbations_at_q/sigma_ket");
  const Cplx expected = at_q.elements.at[4][2].sigma_ket[7] * kRydberg_ev;
  EXPECT_DOUBLE_EQ(sigma[2 * ((4 * 3 + 2) * n + 7) + 1], expected.imag());
  const std::string table = table_of(summary_of(run, find_device("cpu"), 1));
  EXPECT_NE(table.find("first order in displacements at q"), std::string::npos);
  EXPECT_NE(table.find("strongest coupling"), std::string::npos);
  write_wave_vector_table(directory.path() / "modes_at_q.dat", run.wave_vectors, run.field);
  std::ifstream lines(directory.path() / "modes_at_q.dat");
  std::string line;
  int rows = 0;
  while (std::getline(lines, line)) rows += line.rfind('#', 0) != 0 ? 1 : 0;
  EXPECT_EQ(rows, static_cast<int>(at_q.phonons->couplings.size()));
}

/// Returns the complex displacement √M u of the atom at a place in a mode, [axis]. Places
/// are Cartesian in units of the lattice parameter; it is empty where no atom is.
std::vector<Cplx> displacement_at(const test::GalliumArsenideModes& modes, std::size_t mode,
                                  const Vec3& q, const Vec3& place) {
  for (std::size_t atom = 0; atom < 2; ++atom)
    for (int i = -4; i <= 4; ++i)
      for (int j = -4; j <= 4; ++j)
        for (int k = -4; k <= 4; ++k) {
          const Vec3 cell{1.0 * i, 1.0 * j, 1.0 * k};
          double distance = 0.0;
          for (std::size_t x = 0; x < 3; ++x) {
            double coordinate = -place[x];
            for (std::size_t a = 0; a < 3; ++a)
              coordinate += (cell[a] + modes.position[atom][a]) * modes.lattice[a][x];
            distance += coordinate * coordinate;
          }
          if (distance > 1e-8) continue;
          std::vector<Cplx> u;
          for (std::size_t x = 0; x < 3; ++x)
            u.push_back(modes.eigenvector[mode][3 * atom + x] *
                        std::polar(1.0, 2.0 * kPi * dot(q, cell)));
          return u;
        }
  return {};
}

// The modes of another cell, with atoms in other cells, other lattice vectors, another origin and
// inverted, move every atom of the crystal as their own file does, up to one phase.
TEST(WaveVectorJob, ModesOfAnotherCellMoveTheSameAtoms) {
  const quasi::test::TemporaryDirectory directory;
  const EmpiricalCrystal wanted{.name = "gaas"};
  const Crystal crystal = empirical_crystal(wanted);
  const Vec3 q{1.0 / 3.0, 0.0, 0.0};
  test::GalliumArsenideModes own = modes_at_third();
  for (const double sign : {1.0, -1.0}) {
    test::GalliumArsenideModes other = own;
    other.lattice = {{0, .5, .5}, {.5, 0, .5}, {.5, .5, 0}};
    other.position = {{0.1, 0.2, 0.3}, {0.1 - sign * 1.25, 0.2 + sign * 0.75, 0.3 - sign * 2.25}};
    // q·a of the lattice vectors (0,½,½), (½,0,½), (½,½,0) of the file. In the job these are
    // a₂, a₂ − a₃ and a₂ − a₁.
    const Vec3 file_q{0.0, 0.0, -1.0 / 3.0};
    other.further = "q = [0, 0, -0.33333333]\n";
    write(directory.path() / "other.toml", other.text());
    const ZeroPointModes found =
        zero_point_modes_at(read_phonon_modes_at_q(directory.path() / "other.toml"), q, crystal);
    for (std::size_t mode = 0; mode < 6; ++mode) {
      std::optional<Cplx> common;
      for (int cell = -1; cell <= 1; ++cell)
        for (std::size_t atom = 0; atom < 2; ++atom) {
          // Atom 1 of the job and of the file lie on each other.
          Vec3 from_first = crystal.atoms[atom].position_alat - crystal.atoms[0].position_alat +
                            static_cast<double>(cell) * crystal.avec[0];
          Vec3 first{};
          for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t x = 0; x < 3; ++x)
              first[x] += other.position[0][a] * other.lattice[a][x];
          const auto u = displacement_at(other, mode, file_q, first + sign * from_first);
          ASSERT_EQ(u.size(), 3u) << sign << ' ' << cell << ' ' << atom;
          for (std::size_t x = 0; x < 3; ++x) {
            const Cplx expected = sign > 0.0 ? u[x] : -std::conj(u[x]),
                       own_u = found.eigenvector[mode * 6 + 3 * atom + x] *
                               std::polar(1.0, 2.0 * kPi * cell / 3.0);
            if (!common) common = own_u / expected;
            EXPECT_LT(std::abs(own_u - *common * expected), 1e-6)
                << sign << ' ' << mode << ' ' << cell << ' ' << atom << ' ' << x;
          }
        }
    }
  }
}

// The valence top at Γ is even and that at L is odd about the centre of a bond. Modes at L have a
// parity too, so that the transverse acoustic and the longitudinal optical ones do not couple them.
// The modes are those of the example, with eight digits: 1e-4 meV.
TEST(WaveVectorJob, ParityForbidsModesAtL) {
  const Calculation run = run_deck(
      "[meanfield]\nsource = \"epm\"\ncutoff_ry = 5.0\nk_grid = [2, 2, 2]\nbands = 14\n"
      "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 4\nkpoints = [[0, 0, 0]]\n[perturbation]\n"
      "q = [[0.5, 0.5, 0.5]]\nmodes_at_q = [\"silicon-modes-sw/l.toml\"]\n",
      quasi::test::source_dir() / "examples/gw");
  ASSERT_TRUE(run.wave_vectors[0].phonons);
  int forbidden = 0, allowed = 0;
  for (const ModeCoupling& c : run.wave_vectors[0].phonons->couplings) {
    if (c.bra != std::pair{3, 4} || c.ket != std::pair{2, 4}) continue;
    const bool odd = c.mode == 2 || c.mode == 4;  // LA and TO
    (odd ? allowed : forbidden) += 1;
    if (odd) {
      EXPECT_GT(1e3 * c.mean_field_ev, 10.0);
      EXPECT_GT(1e3 * c.sigma_ev, 10.0);
    } else {
      EXPECT_LT(1e3 * c.mean_field_ev, 1e-4);
      EXPECT_LT(1e3 * c.sigma_ev, 1e-4);
    }
  }
  EXPECT_EQ(allowed, 2);
  EXPECT_EQ(forbidden, 2);
}

// A thermal result lists the modes of its whole mesh. The writer of the test gives (½,0,0) half of
// the energies at Γ.
TEST(WaveVectorJob, ThermalResultsHoldTheModesOfTheirMesh) {
  const quasi::test::TemporaryDirectory directory;
  test::GalliumArsenideModes{}.write_thermal(directory.path() / "result.h5", {});
  const auto list = read_phonon_modes_at_q(directory.path() / "result.h5");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].q, (Vec3{0.5, 0.0, 0.0}));
  EXPECT_EQ(list[1].q, Vec3{});
  for (std::size_t m = 0; m < 6; ++m)
    EXPECT_NEAR(list[0].energy_ev[m], 0.5 * list[1].energy_ev[m], 1e-15);
  EXPECT_NEAR(list[1].energy_ev[5], 0.0333, 1e-9);
  EXPECT_EQ(list[0].atoms.size(), 2u);
}

TEST(WaveVectorJob, RefusesWhatItDoesNotHave) {
  const quasi::test::TemporaryDirectory directory;
  write(directory.path() / "third.toml", modes_at_third().text());
  const std::pair<const char*, const char*> cases[] = {
      {"q = [[0.5, 0, 0]]\n", "multiples of 1/3"},
      {"q = [[0, 0.25, 0]]\n", "along b2"},
      {"q = [[2, 0, 0]]\n", "outside -1"},
      {"q = []\n", "empty list"},
      {"q = [[0.3333, 0, 0], [-0.6667, 0, 0]]\n", "twice"},
      {"q = [[0.3333, 0]]\n", "perturbation.q"},
      {"q = [[0.3333, 0, 0]]\nstate_response = \"sternheimer\"\n", "built for q = 0"},
      {"q = [[0.3333, 0, 0]]\ndisplaced = [\"a\", \"b\"]\n", "not allowed with"},
      {"modes_at_q = [\"third.toml\"]\n", "other than 0"},
      {"q = [[0.6667, 0, 0]]\nmodes_at_q = [\"third.toml\"]\n", "no modes at q"},
      {"q = [[0.3333, 0, 0]]\natoms = [1]\nmodes_at_q = [\"third.toml\"]\n", "need all atoms"},
      {"modes = \"third.toml\"\n", "add this q to perturbation.q"},
      {"form_factors = \"shell\"\n", "form_factors"},
  };
  for (const auto& [table, words] : cases)
    EXPECT_NE(refusal_of(table, directory.path()).find(words), std::string::npos)
        << table << refusal_of(table, directory.path());
  EXPECT_EQ(refusal_of("q = [[0.3333, 0, 0]]\nmodes_at_q = [\"third.toml\"]\n", directory.path()),
            "");
}

}  // namespace
}  // namespace quasi::gw
