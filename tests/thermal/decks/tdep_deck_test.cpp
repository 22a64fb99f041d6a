// Tests decks of TDEP: silicon and rock salt written as TDEP files, and broken files.

#include "workers/thermal/input/tdep/tdep_deck.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "examples/thermal/generate/deck_writer.hpp"
#include "examples/thermal/generate/rigid_ion.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/phonopy_twin.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

void write_cell(const fs::path& directory, const Crystal& crystal, const std::string& elements,
                const std::string& counts) {
  std::ofstream out(directory / "infile.ucposcar");
  out.precision(17);
  out << "cell\n1.0\n";
  for (const Vec3& a : crystal.lattice_nm)
    out << 10 * a[0] << " " << 10 * a[1] << " " << 10 * a[2] << "\n";
  out << elements << "\n" << counts << "\nDirect\n";
  for (const Vec3& p : crystal.position) out << p[0] << " " << p[1] << " " << p[2] << "\n";
}

/// One pair of a TDEP file.
struct Pair {
  int other;
  Index3 cell;
  std::array<double, 9> block;
};

void write_second_order(const fs::path& file, const std::vector<std::vector<Pair>>& pairs,
                        const std::string& polar) {
  std::ofstream out(file);
  out.precision(17);
  out << pairs.size() << "   How many atoms per unit cell\n 7.5  Realspace cutoff (A)\n";
  for (const auto& of_atom : pairs) {
    out << of_atom.size() << "   How many neighbours\n";
    for (const Pair& pair : of_atom) {
      out << pair.other + 1 << "    index of neighbour\n";
      for (const int x : pair.cell) out << " " << x << ".0";
      for (int e = 0; e < 9; ++e) out << (e % 3 == 0 ? "\n" : " ") << pair.block[e];
      out << "\n";
    }
  }
  out << polar;
}

/// Rewrites FORCE_CONSTANTS_3RD or _4TH as TDEP does, from the numbers of the text.
void rewrite_anharmonic(const fs::path& from, const fs::path& to, int order,
                        const Crystal& crystal) {
  std::ifstream in(from);
  const Mat3 to_cell = inverse(transpose(crystal.lattice_nm));
  std::int64_t n = 0, number = 0;
  in >> n;
  std::vector<std::ostringstream> tuples(static_cast<std::size_t>(crystal.n_atoms()));
  std::vector<std::int64_t> counts(tuples.size(), 0);
  for (std::int64_t block = 0; block < n; ++block) {
    in >> number;
    std::ostringstream cells;
    cells << "0 0 0\n";
    for (int leg = 1; leg < order; ++leg) {
      Vec3 v{};
      for (double& x : v) in >> x;
      const Vec3 exact = to_cell * (0.1 * v);
      for (const double x : exact) cells << std::lround(x) << ".0 ";
      cells << "\n";
    }
    std::size_t first = 0;
    std::ostringstream atoms, values;
    for (int leg = 0; leg < order; ++leg) {
      int atom = 0;
      in >> atom;
      if (leg == 0) first = static_cast<std::size_t>(atom - 1);
      atoms << atom << "  atom " << leg + 1 << " in tuple\n";
    }
    const int size = order == 3 ? 27 : 81;
    for (int e = 0; e < size; ++e) {
      int index = 0;
      std::string value;
      for (int d = 0; d < order; ++d) in >> index;
      in >> value;
      values << value << (e % 3 == 2 ? "\n" : " ");
    }
    ++counts[first];
    tuples[first] << atoms.str() << cells.str() << values.str();
  }
  ASSERT_TRUE(in);
  std::ofstream out(to);
  out << crystal.n_atoms() << "  atoms\n 4.0 cutoff\n";
  for (std::size_t atom = 0; atom < tuples.size(); ++atom)
    out << counts[atom] << "  tuples\n" << tuples[atom].str();
}

/// The Stillinger–Weber example as files of TDEP.
void write_silicon(const fs::path& directory) {
  const test::OwnDeck own;
  write_cell(directory, own.crystal, "Si", "2");
  const double unit = own.control.constants().ev_per_a2_amu_to_omega2;
  std::vector<std::vector<Pair>> pairs(2);
  for (int atom = 0; atom < 2; ++atom)
    for (int other = 0; other < 2; ++other)
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
          for (int k = -1; k <= 1; ++k) {
            const double* c = own.second.block(other, atom, {i, j, k});
            Pair pair{.other = other, .cell = {i, j, k}, .block = {}};
            double largest = 0.0;
            for (int a = 0; a < 3; ++a)
              for (int b = 0; b < 3; ++b) {
                pair.block[3 * a + b] = c[3 * b + a] / unit;
                largest = std::max(largest, std::fabs(c[3 * b + a]));
              }
            if (largest > 0.0) pairs[atom].push_back(pair);
          }
  write_second_order(directory / "outfile.forceconstant", pairs,
                     " 0   # no information about Born charges\n");
  rewrite_anharmonic(own.directory / "FORCE_CONSTANTS_3RD",
                     directory / "outfile.forceconstant_thirdorder", 3, own.crystal);
  rewrite_anharmonic(own.directory / "FORCE_CONSTANTS_4TH",
                     directory / "infile.forceconstant_fourthorder", 4, own.crystal);
  std::ofstream(directory / "infile.isotopes") << "1\n1.0 28.0855\n1\n1.0 28.0855\n";
}

nlohmann::json run(const fs::path& deck, const std::vector<std::string>& settings) {
  const quasi::test::TemporaryDirectory out;
  SilentProgress silent;
  return make_thermal_task()->run({.deck = {.path = deck, .settings = test::settings_of(settings)},
                                   .devices = {Device{}},
                                   .output_directory = out.path(),
                                   .checkpoint_directory = out.path()},
                                  silent);
}

// TDEP files and CONTROL describe one crystal with three and four phonons. κ is equal to 1e-9; the
// files hold 17 digits.
TEST(Tdep, GivesTheConductivityOfControl) {
  const quasi::test::TemporaryDirectory place;
  write_silicon(place.path());
  ASSERT_TRUE(is_tdep_deck(place.path()));
  const fs::path control = quasi::test::source_dir() / "examples/thermal/silicon-sw";
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"ngrid=4,4,4", "T=300"},
        std::vector<std::string>{"ngrid=3,3,3", "T=300", "four_phonon=T", "scalebroad=0.5"}}) {
    const auto tdep = run(place.path(), settings), expected = run(control, settings);
    EXPECT_EQ(tdep["processes_3ph"], expected["processes_3ph"]);
    for (const char* name : {"kappa_rta_w_per_mk", "kappa_w_per_mk"})
      for (int i = 0; i < 3; ++i) {
        const double k = expected[name][0][i][i].get<double>();
        EXPECT_NEAR(tdep[name][0][i][i].get<double>(), k, 1e-9 * k) << name;
      }
  }
}

// CONTROL with tdep = .true. takes the second order from TDEP and the rest from FORCE_CONSTANTS_*.
TEST(Tdep, SecondOrderBesideControl) {
  const quasi::test::TemporaryDirectory place;
  write_silicon(place.path());
  const fs::path own = quasi::test::source_dir() / "examples/thermal/silicon-sw";
  for (const char* name : {"CONTROL", "FORCE_CONSTANTS_3RD"})
    fs::copy(own / name, place.path() / name);
  const std::vector<std::string> settings{"ngrid=4,4,4", "T=300", "tdep=T", "convergence=F"};
  const double k =
      run(own, {"ngrid=4,4,4", "T=300", "convergence=F"})["kappa_rta_w_per_mk"][0][0][0];
  EXPECT_NEAR(run(place.path(), settings)["kappa_rta_w_per_mk"][0][0][0].get<double>(), k,
              1e-9 * k);
}

/// Writes the rigid-ion model of rock salt for TDEP: pairs of the repulsion alone, and the charges,
/// whose whole interaction is the Coulomb part of the model.
void write_rocksalt(const fs::path& directory, const Crystal& crystal, int correction) {
  const quasi::model::RigidIon model;
  write_cell(directory, crystal, "Na Cl", "1 1");
  const double phi =
      model.repulsion_ev() * std::exp(-0.5 * model.lattice_constant_angstrom / model.rho_angstrom);
  const double r = 0.5 * model.lattice_constant_angstrom;
  const double along = phi / (model.rho_angstrom * model.rho_angstrom);
  const double across = -phi / (model.rho_angstrom * r);
  std::vector<std::vector<Pair>> pairs(2);
  for (int atom = 0; atom < 2; ++atom) {
    Pair self{.other = atom, .cell = {0, 0, 0}, .block = {}};
    for (int i = -2; i <= 2; ++i)
      for (int j = -2; j <= 2; ++j)
        for (int k = -2; k <= 2; ++k) {
          const Vec3 d =
              10.0 * (crystal.cartesian_nm(crystal.position[1 - atom] - crystal.position[atom]) +
                      crystal.lattice_vector_nm({i, j, k}));
          if (std::fabs(length(d) - r) > 1e-6) continue;
          Pair pair{.other = 1 - atom, .cell = {i, j, k}, .block = {}};
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b) {
              const double h = (a == b ? across : 0.0) + (along - across) * d[a] * d[b] / (r * r);
              pair.block[3 * a + b] = -h;
              self.block[3 * a + b] += h;
            }
          pairs[atom].push_back(pair);
        }
    ASSERT_EQ(pairs[atom].size(), 6u);
    pairs[atom].push_back(self);
  }
  std::ostringstream polar;
  polar << correction << " # polar\n1 0 0 Dielectric tensor xx xy xz\n0 1 0\n0 0 1\n 0.31 # Ewald\n"
        << "1 # components\n 1.0 # component\n";
  for (int row = 0; row < 18; ++row) polar << (row % 4 == 0 ? (row < 9 ? 1.0 : -1.0) : 0.0) << "\n";
  for (const double z : {1.0, -1.0})
    polar << z << " 0 0 Born effective charge\n0 " << z << " 0\n0 0 " << z << "\n";
  polar << "  3 Number of irreducible coordination shells\n";
  write_second_order(directory / "infile.forceconstant", pairs, polar.str());
  std::ofstream(directory / "infile.isotopes") << "1\n1.0 22.98977\n1\n1.0 35.4527\n";
}

// The whole dipole sum and the repulsion give D(q) of the Ewald deck at any q, within the rounding
// of its files at 1e-9 eV/Å². The gradient agrees as well.
TEST(Tdep, PolarCrystalsHaveTheirDipoles) {
  const quasi::test::TemporaryDirectory espresso, place;
  quasi::model::write_deck("rocksalt", espresso.path(), quasi::model::SecondOrder::kEspresso);
  const Deck ewald = read_deck(espresso.path(), test::settings_of({"onlyharmonic=T"}));
  write_rocksalt(place.path(), ewald.crystal, 3);
  const Deck tdep =
      read_deck(place.path(), test::settings_of({"onlyharmonic=T", "ngrid=4,4,4", "T=300"}));
  EXPECT_EQ(tdep.crystal.born[1][2][2], -1.0);
  EXPECT_NEAR(tdep.crystal.mass_amu[1], 35.4527, 1e-12);
  const DynamicalMatrixBuilder a(ewald.crystal, ewald.second_order,
                                 ewald.control.harmonic_options());
  const DynamicalMatrixBuilder b(tdep.crystal, tdep.second_order, tdep.control.harmonic_options());
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (int draw = 0; draw < 5; ++draw) {
    const Vec3 q{uniform(random), uniform(random), uniform(random)};
    const DynamicalMatrix x = a.at(q, true), y = b.at(q, true);
    for (std::size_t e = 0; e < x.d.size(); ++e) {
      EXPECT_LT(std::abs(x.d[e] - y.d[e]), 1e-6 * 3500.0);
      for (int g = 0; g < 3; ++g)
        EXPECT_LT(std::abs(x.gradient[g][e] - y.gradient[g][e]), 1e-6 * 3500.0);
    }
  }
}

std::string refusal(const fs::path& directory, const std::vector<std::string>& settings) {
  try {
    read_deck(directory, test::settings_of(settings));
  } catch (const InvalidInput& failure) {
    return failure.what();
  }
  return "accepted";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST(Tdep, BrokenFilesNameLineAndItem) {
  const std::vector<std::string> settings{"ngrid=4,4,4", "T=300"};
  const quasi::test::TemporaryDirectory place;
  write_silicon(place.path());
  expect_part(refusal(place.path(), {"T=300"}), "'ngrid' is required");
  const fs::path second = place.path() / "outfile.forceconstant";
  std::ifstream in(second);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(second) << text;
    return refusal(place.path(), settings);
  };
  expect_part(broken("2   How many atoms", "3   How many atoms"),
              "outfile.forceconstant line 2: the file has 3 atoms");
  expect_part(broken(".0 ", ".5 "), "must be three integers");
  expect_part(broken(" 0   # no", " 2   # no"), "old version of TDEP");
  std::ofstream(second) << good.substr(0, good.size() / 2);
  expect_part(refusal(place.path(), settings), "outfile.forceconstant line");
  std::ofstream(second) << good;
  EXPECT_EQ(refusal(place.path(), settings), "accepted");
  fs::remove(place.path() / "outfile.forceconstant_thirdorder");
  expect_part(refusal(place.path(), settings), "outfile.forceconstant_thirdorder; add it");
  std::ofstream(place.path() / "infile.isotopes") << "1\n0.5 28.0\n1\n1.0 28.0\n";
  expect_part(refusal(place.path(), settings), "infile.isotopes");
}

// Temperatures far from that of the fit, and charges that are not used, are said.
TEST(Tdep, TemperatureAndChargesAreSaid) {
  const quasi::test::TemporaryDirectory place;
  write_silicon(place.path());
  std::ofstream(place.path() / "infile.meta") << "216 # atoms\n100 # steps\n1.0 # fs\n300 # K\n";
  std::ofstream(place.path() / "infile.lotosplitting")
      << "12 0 0\n0 12 0\n0 0 12\n1 0 0\n0 1 0\n0 0 1\n-1 0 0\n0 -1 0\n0 0 -1\n";
  const auto warnings = [&](const char* temperature) {
    std::string text;
    for (const auto& w :
         read_deck(place.path(), test::settings_of({"ngrid=4,4,4", temperature})).warnings)
      text += w;
    return text;
  };
  EXPECT_EQ(warnings("T=320").find("fitted at 300 K"), std::string::npos);
  expect_part(warnings("T=400"), "fitted at 300 K");
  expect_part(warnings("T=320"), "infile.lotosplitting holds charges");
}

}  // namespace
}  // namespace quasi::thermal
