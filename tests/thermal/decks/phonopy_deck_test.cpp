#include "workers/thermal/input/phonopy/phonopy_deck.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/phonopy_twin.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

using test::OwnDeck;
using test::PhonopyTwin;
using test::TwinSupercell;
using test::TwinUnits;

class PhonopyDeckTest : public testing::TestWithParam<bool> {
 protected:
  quasi::test::TemporaryDirectory directory_;
  OwnDeck own_;
};

// Two layouts of one potential give equal D(q) anywhere, to the rounding of the files' 15 digits.
TEST_P(PhonopyDeckTest, GivesTheSameDynamicalMatrices) {
  const PhonopyTwin twin(own_, directory_.path(), GetParam());
  ASSERT_TRUE(is_phonopy_deck(directory_.path()));
  const PhonopyDeck deck =
      read_phonopy_deck(directory_.path(), assignments_of({{"ngrid", "4 4 4"}, {"T", "300"}}));
  const DynamicalMatrixBuilder ours(own_.crystal, own_.second, own_.control.harmonic_options());
  const DynamicalMatrixBuilder theirs(deck.crystal, deck.second, deck.control.harmonic_options());
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (int draw = 0; draw < 20; ++draw) {
    const Vec3 q{uniform(random), uniform(random), uniform(random)};
    const auto a = ours.at(q, true);
    const auto b = theirs.at(q, true);
    for (std::size_t e = 0; e < a.d.size(); ++e)
      EXPECT_LT(std::abs(a.d[e] - b.d[e]), 1e-8 * 9000.0);
    for (int g = 0; g < 3; ++g)
      for (std::size_t e = 0; e < a.d.size(); ++e)
        EXPECT_LT(std::abs(a.gradient[g][e] - b.gradient[g][e]), 1e-8 * 9000.0);
  }
}

// The sparse third order is equal, block by block.
TEST_P(PhonopyDeckTest, GivesTheSameThirdOrder) {
  const PhonopyTwin twin(own_, directory_.path(), GetParam());
  const PhonopyDeck deck =
      read_phonopy_deck(directory_.path(), assignments_of({{"ngrid", "4 4 4"}, {"T", "300"}}));
  ASSERT_TRUE(deck.third);
  std::map<std::vector<int>, std::int64_t> ours;
  std::int64_t not_zero = 0;
  const auto key = [](const SparseForceConstants& fc, std::int64_t block) {
    std::vector<int> k(fc.atom.begin() + block * 3, fc.atom.begin() + block * 3 + 3);
    k.insert(k.end(), fc.cell.begin() + block * 6, fc.cell.begin() + block * 6 + 6);
    return k;
  };
  for (std::int64_t block = 0; block < own_.third.n_blocks(); ++block) {
    bool zero = true;
    for (int e = 0; e < 27; ++e) zero = zero && own_.third.tensor[block * 27 + e] == 0.0;
    if (zero) continue;
    ours[key(own_.third, block)] = block;
    ++not_zero;
  }
  ASSERT_EQ(deck.third->n_blocks(), not_zero);
  for (std::int64_t block = 0; block < deck.third->n_blocks(); ++block) {
    const auto found = ours.find(key(*deck.third, block));
    ASSERT_NE(found, ours.end());
    for (int e = 0; e < 27; ++e)
      EXPECT_NEAR(deck.third->tensor[block * 27 + e], own_.third.tensor[found->second * 27 + e],
                  1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, PhonopyDeckTest, testing::Values(false, true),
                         [](const auto& rows) { return rows.param ? "Compact" : "Full"; });

constexpr double kBohr_angstrom = 0.529177210903;  // CODATA 2018
constexpr double kHartree_ev = 27.211386245988;

PhonopyDeck read_twin(const fs::path& place) {
  return read_phonopy_deck(place, assignments_of({{"ngrid", "4 4 4"}, {"T", "300"}}));
}

// Every calculator's units give the crystal of Å and eV, and `physical_unit` goes before the
// calculator. The limit of 1e-10 is the rounding of the factors.
TEST(PhonopyUnits, EveryCalculatorGivesOneCrystal) {
  const OwnDeck own;
  struct Case {
    std::string yaml;
    double length, second;
    std::string in_fc2;
  };
  const double ry = 0.5 * kHartree_ev / (kBohr_angstrom * kBohr_angstrom);
  std::vector<Case> cases;
  for (const char* name : {"vasp", "aims", "lammps", "pwmat", "crystal", "castep"})
    cases.push_back({std::string("phono3py:\n  calculator: ") + name + "\n", 1.0, 1.0, ""});
  for (const char* name : {"qe", "qlm"})
    cases.push_back(
        {std::string("phonopy:\n  calculator: ") + name + "\n", kBohr_angstrom, ry, ""});
  for (const char* name : {"abinit", "siesta", "abacus"})
    cases.push_back(
        {std::string("calculator: ") + name + "\n", kBohr_angstrom, 1.0 / kBohr_angstrom, ""});
  for (const char* name : {"elk", "dftbp", "turbomole", "fleur", "exciting"})
    cases.push_back({std::string("calculator: ") + name + "\n", kBohr_angstrom, 2.0 * ry, ""});
  cases.push_back({"calculator: wien2k\n", kBohr_angstrom, 1e-3 * ry, ""});
  cases.push_back({"calculator: cp2k\n", 1.0, kHartree_ev / kBohr_angstrom, ""});
  cases.push_back(
      {"calculator: qe\nphysical_unit:\n  atomic_mass: \"AMU\"\n  length: \"angstrom\"\n"
       "  force_constants: \"eV/angstrom^2\"\n",
       1.0, 1.0, ""});
  cases.push_back({"physical_unit:\n  length: \"au\"\n  force_constants: \"mRy/au^2\"\n",
                   kBohr_angstrom, 1e-3 * ry, "mRy/au^2"});
  for (const Case& c : cases) {
    const quasi::test::TemporaryDirectory place;
    const PhonopyTwin twin(own, place.path(), true, {c.yaml, c.length, c.second, c.in_fc2});
    const PhonopyDeck deck = read_twin(place.path());
    for (int i = 0; i < 3; ++i)
      EXPECT_LT(length(deck.crystal.lattice_nm[i] - own.crystal.lattice_nm[i]), 1e-10) << c.yaml;
    const DynamicalMatrixBuilder ours(own.crystal, own.second, own.control.harmonic_options());
    const DynamicalMatrixBuilder theirs(deck.crystal, deck.second, deck.control.harmonic_options());
    const Vec3 q{0.13, -0.31, 0.42};
    const auto a = ours.at(q, false), b = theirs.at(q, false);
    for (std::size_t e = 0; e < a.d.size(); ++e)
      EXPECT_LT(std::abs(a.d[e] - b.d[e]), 1e-10 * 9000.0) << c.yaml;
    double largest = 0.0, expected = 0.0;
    for (const double x : deck.third->tensor) largest = std::max(largest, std::fabs(x));
    for (const double x : own.third.tensor) expected = std::max(expected, std::fabs(x));
    EXPECT_NEAR(largest, expected, 1e-10 * expected) << c.yaml;
  }
}

// A unit in fc2.hdf5 goes before that of the yaml, which still holds for fc3.hdf5.
TEST(PhonopyUnits, FileGoesBeforeYaml) {
  const OwnDeck own;
  const quasi::test::TemporaryDirectory plain, stated;
  const PhonopyTwin twin(own, plain.path(), true);
  const PhonopyTwin same(own, stated.path(), true, {"", 1.0, 1.0, "Ry/au^2"});
  const double ry = 0.5 * kHartree_ev / (kBohr_angstrom * kBohr_angstrom);
  const PhonopyDeck a = read_twin(plain.path()), b = read_twin(stated.path());
  ASSERT_EQ(a.second.images.size(), b.second.images.size());
  for (std::size_t i = 0; i < a.second.images.size(); ++i)
    for (std::size_t e = 0; e < 9; ++e)
      EXPECT_NEAR(b.second.images[i].value[e], ry * a.second.images[i].value[e],
                  1e-10 * std::fabs(b.second.images[i].value[e]));
  EXPECT_EQ(a.third->tensor, b.third->tensor);
}

TEST(PhonopyUnits, UnknownWordsAreRefusedWithTheKnownOnes) {
  const OwnDeck own;
  const auto refusal = [&](const TwinUnits& units) -> std::string {
    const quasi::test::TemporaryDirectory place;
    const PhonopyTwin twin(own, place.path(), true, units);
    try {
      read_twin(place.path());
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "accepted";
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
  };
  contains(refusal({"calculator: quantumatk\n"}), "'quantumatk' is not known");
  contains(refusal({"calculator: quantumatk\n"}), "wien2k");
  contains(refusal({"physical_unit:\n  length: furlong\n"}), "'furlong'");
  contains(refusal({"physical_unit:\n  force_constants: eV/angstrom\n"}), "power 1 of length");
  contains(refusal({.in_fc2 = "N/m"}), "fc2.hdf5: 'physical_unit': the unit 'N/m'");
  contains(refusal({.in_fc2 = "Ry/au^3"}), "power 3 of length");
}

/// Σ over the blocks of Φ e^{i(q'·d' + q''·d'')}, [slot indices], with d between atoms.
std::vector<std::complex<double>> transform(const PhonopyDeck& deck, const Vec3& q1,
                                            const Vec3& q2) {
  const int n = deck.crystal.n_atoms();
  std::vector<std::complex<double>> sum(static_cast<std::size_t>(27 * n * n * n));
  for (std::int64_t block = 0; block < deck.third->n_blocks(); ++block) {
    const int* atom = &deck.third->atom[static_cast<std::size_t>(3 * block)];
    const int* cell = &deck.third->cell[static_cast<std::size_t>(6 * block)];
    double turns = 0.0;
    for (int d = 0; d < 3; ++d) {
      const double home = deck.crystal.position[atom[0]][d];
      turns += q1[d] * (cell[d] + deck.crystal.position[atom[1]][d] - home) +
               q2[d] * (cell[3 + d] + deck.crystal.position[atom[2]][d] - home);
    }
    for (int e = 0; e < 27; ++e)
      sum[static_cast<std::size_t>(((atom[0] * n + atom[1]) * n + atom[2]) * 27 + e)] +=
          deck.third->tensor[static_cast<std::size_t>(27 * block + e)] *
          std::polar(1.0, 2.0 * units::kPi * turns);
  }
  return sum;
}

// phono3py sums over the tensor three times, with each atom as the centre from which images are
// nearest, and takes the row of that centre. With G the sum over `first`, its centre 2 is
// G(q, q'') of atoms (2, 1, 3), with indices exchanged, and q + q' + q'' = 0.
TEST(TripletCentres, MeanIsTheSumOfPhono3py) {
  const OwnDeck own;
  const quasi::test::TemporaryDirectory place;
  const PhonopyTwin twin(own, place.path(), true, {}, TwinSupercell::kPrimitive16);
  const std::vector<Setting> settings{{"ngrid", "4 4 4"}, {"T", "300"}};
  auto with_first = settings;
  with_first.push_back({"fc3_centres", "first"});
  const PhonopyDeck mean = read_phonopy_deck(place.path(), assignments_of(settings));
  const PhonopyDeck first = read_phonopy_deck(place.path(), assignments_of(with_first));
  const Vec3 q1{0.11, -0.37, 0.23}, q2{0.41, 0.09, -0.17};
  const Vec3 q0 = -1.0 * (q1 + q2);
  const auto sum = transform(mean, q1, q2);
  const auto one = transform(first, q1, q2), two = transform(first, q0, q2),
             three = transform(first, q1, q0);
  const int n = 2;
  double largest = 0.0;
  for (const auto& x : sum) largest = std::max(largest, std::abs(x));
  const auto at = [&](int i, int j, int k, int a, int b, int c) {
    return static_cast<std::size_t>(((i * n + j) * n + k) * 27 + a * 9 + b * 3 + c);
  };
  double apart = 0.0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k)
        for (int e = 0; e < 27; ++e) {
          const int a = e / 9, b = e / 3 % 3, c = e % 3;
          const auto expected = (one[at(i, j, k, a, b, c)] + two[at(j, i, k, b, a, c)] +
                                 three[at(k, j, i, c, b, a)]) /
                                3.0;
          EXPECT_LT(std::abs(sum[at(i, j, k, a, b, c)] - expected), 1e-12 * largest);
          apart = std::max(apart, std::abs(one[at(i, j, k, a, b, c)] - expected));
        }
  EXPECT_GT(apart, 1e-3 * largest);  // or the cell is so large that no image is shared
}

// In a cell of 16 atoms the images of second neighbours tie. The mean keeps the exchange of atoms
// and breaks the sum over the last atom; the first centre keeps the sum and breaks the exchange.
TEST(TripletCentres, MeanKeepsTheExchangeAndFirstTheSum) {
  const OwnDeck own;
  const quasi::test::TemporaryDirectory place;
  const PhonopyTwin twin(own, place.path(), true, {}, TwinSupercell::kPrimitive16);
  const auto deck = [&](const char* centres) {
    return read_deck(place.path(), {{"ngrid", "4 4 4"}, {"T", "300"}, {"fc3_centres", centres}});
  };
  const Deck mean = deck("mean"), first = deck("first");
  EXPECT_LT(permutation_violation(mean.third_order), 1e-12);
  EXPECT_GT(permutation_violation(first.third_order), 1e-3);
  EXPECT_GT(sum_rule_violation(mean.third_order), 1e-3);
  EXPECT_LT(sum_rule_violation(first.third_order), 1e-12);
  for (const Deck* read : {&mean, &first}) EXPECT_LT(*read->third_order.tensor_sum_rule, 1e-12);
  // The rule of the images is said, and it is no error.
  const auto said = [](const Deck& read) {
    for (const std::string& warning : read.warnings)
      if (warning.find("shared among nearest images") != std::string::npos) return true;
    return false;
  };
  EXPECT_EQ(said(mean), sum_rule_violation(mean.third_order) > 2e-2);
  EXPECT_FALSE(said(first));
}

// A tensor that breaks the sum rule by more than 1e-3 is refused in spite of the limit of images.
TEST(TripletCentres, TensorMustObeyTheSumRule) {
  const OwnDeck own;
  const quasi::test::TemporaryDirectory place;
  const PhonopyTwin twin(own, place.path(), true, {}, TwinSupercell::kPrimitive16);
  const H5Reader old(place.path() / "fc3.hdf5");
  auto values = old.doubles("/fc3");
  const double largest =
      std::fabs(*std::max_element(values.begin(), values.end(),
                                  [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
  values[5] += 2e-3 * largest;
  H5Writer out(place.path() / "fc3.hdf5");
  out.write("/fc3", values, {2, 16, 16, 3, 3, 3}, "eV/angstrom^3");
  out.write("/p2s_map", old.integers("/p2s_map"), {2}, "1");
  out.commit();
  const std::vector<Setting> settings{{"ngrid", "4 4 4"}, {"T", "300"}};
  try {
    read_deck(place.path(), settings);
    FAIL() << "a broken sum rule was accepted";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("sum rule over the last atom is broken by 0.002"),
              std::string::npos)
        << failure.what();
  }
}

// Gonze–Lee keeps the plain transform of the constants at the wave vectors of the supercell,
// whatever the charges, and changes it elsewhere. The supercell matrix of this deck is not
// diagonal.
TEST(PhonopySupercells, GonzeLeeKeepsTheirWaveVectors) {
  const OwnDeck own;
  const quasi::test::TemporaryDirectory place;
  const PhonopyTwin twin(own, place.path(), true);
  PhonopyDeck deck = read_twin(place.path());
  deck.crystal.born = {kIdentity, kIdentity};
  for (int i = 0; i < 3; ++i) deck.crystal.born[1][i][i] = -1.0;
  for (int i = 0; i < 3; ++i) deck.crystal.epsilon[i][i] = 3.0;
  const HarmonicOptions options = deck.control.harmonic_options();
  HarmonicOptions plain_options = options;
  plain_options.nonanalytic = false;
  const DynamicalMatrixBuilder polar(deck.crystal, deck.second, options);
  const DynamicalMatrixBuilder plain(deck.crystal, deck.second, plain_options);
  const auto apart = [&](const Vec3& q) {
    const auto a = polar.at(q, false), b = plain.at(q, false);
    double largest = 0.0;
    for (std::size_t e = 0; e < a.d.size(); ++e)
      largest = std::max(largest, std::abs(a.d[e] - b.d[e]));
    return largest;
  };
  // S = 2 (-1 1 1; 1 -1 1; 1 1 -1), so S·q is an integer vector at these points.
  for (const Vec3& q : {Vec3{0.5, 0.5, 0.0}, Vec3{0.25, 0.25, 0.0}, Vec3{0.25, 0.5, 0.25},
                        Vec3{0.75, 0.25, 0.5}, Vec3{0.0, 0.5, 0.0}})
    EXPECT_LT(apart(q), 1e-10 * 9000.0) << q[0] << " " << q[1] << " " << q[2];
  EXPECT_GT(apart({0.1, 0.0, 0.0}), 1.0);
  EXPECT_GT(apart({0.25, 0.0, 0.0}), 1.0);  // of a 4×4×4 supercell, which this one is not
}

TEST(PhonopyDeckErrors, NameFileKeyAndRemedy) {
  const quasi::test::TemporaryDirectory directory;
  const OwnDeck own;
  const PhonopyTwin twin(own, directory.path(), true);
  const auto message = [&](const std::vector<Setting>& settings) -> std::string {
    try {
      read_phonopy_deck(directory.path(), assignments_of(settings));
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_NE(message({}).find("--set ngrid="), std::string::npos);
  EXPECT_NE(message({{"ngrid", "4 4 4"}, {"scalebraod", "1"}, {"T", "300"}}).find("scalebroad"),
            std::string::npos);
  {
    H5Writer out(directory.path() / "fc3.hdf5");
    out.write("/fc3", std::vector<double>(27, 0.0), {1, 1, 1, 3, 3, 3}, "eV/angstrom^3");
    out.commit();
  }
  const std::string wrong_shape = message({{"ngrid", "4 4 4"}, {"T", "300"}});
  EXPECT_NE(wrong_shape.find("fc3.hdf5"), std::string::npos);
  EXPECT_NE(wrong_shape.find("64"), std::string::npos);
  fs::remove(directory.path() / "fc3.hdf5");
  EXPECT_NE(message({{"ngrid", "4 4 4"}, {"T", "300"}}).find("onlyharmonic"), std::string::npos);
  EXPECT_NE(message({{"ngrid", "4 4 4"}, {"T", "300"}}).find("displacements and forces"),
            std::string::npos);
  std::ofstream(directory.path() / "phono3py_disp.yaml") << "primitive_cell:\n  lattice: [1, 2\n";
  EXPECT_NE(message({{"ngrid", "4 4 4"}}).find("phono3py_disp.yaml"), std::string::npos);
}

// BORN lists symmetry-distinct atoms; the others follow by the space group. In a hexagonal cell
// with four equivalent atoms one uniaxial tensor must appear four times.
TEST(PhonopyCells, SpreadBornChargesOverEquivalentAtoms) {
  const quasi::test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "POSCAR")
      << "hexagonal\n1.0\n 3.84 0 0\n -1.92 3.3255375 0\n 0 0 6.27\nSi\n4\nDirect\n"
         " 0.3333333333333333 0.6666666666666666 0.0625\n"
         " 0.6666666666666666 0.3333333333333333 0.5625\n"
         " 0.3333333333333333 0.6666666666666666 0.4375\n"
         " 0.6666666666666666 0.3333333333333333 0.9375\n";
  std::ofstream(directory.path() / "BORN")
      << "14.4\n 11 0 0 0 11 0 0 0 12\n 0.5 0 0 0 0.5 0 0 0 -0.25\n";
  PhonopyCells cells;
  cells.primitive = read_poscar(directory.path() / "POSCAR");
  ASSERT_EQ(cells.primitive.n_atoms(), 4);
  read_born(directory.path() / "BORN", 1e-4, cells);
  EXPECT_EQ(cells.epsilon[2][2], 12.0);
  for (const Mat3& z : cells.born)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) EXPECT_NEAR(z[i][j], i != j ? 0.0 : (i == 2 ? -0.25 : 0.5), 1e-6);
  std::ofstream(directory.path() / "BORN") << "14.4\n 11 0 0 0 11 0 0 0 12\n 0.5 0 0\n";
  EXPECT_THROW(read_born(directory.path() / "BORN", 1e-4, cells), InvalidInput);
}

TEST(PhonopyCells, PoscarScalesAndCartesianPositions) {
  const quasi::test::TemporaryDirectory directory;
  const auto path = directory.path() / "POSCAR";
  std::ofstream(path) << "NaCl\n-44.0\n 0 1 1\n 1 0 1\n 1 1 0\nNa Cl\n1 1\nSelective "
                         "dynamics\nCartesian\n 0 0 0 T T T\n 1 0 0 F F F\n";
  const PhonopyCell cell = read_poscar(path);
  EXPECT_NEAR(std::fabs(determinant(cell.lattice_angstrom)), 44.0, 1e-12);
  EXPECT_EQ(cell.symbol[1], "Cl");
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(std::fabs(cell.position[1][i]), 0.5, 1e-12);
  const PhonopyCell super = repeat_cell(cell, {2, 1, 1});
  EXPECT_EQ(super.n_atoms(), 4);
  EXPECT_NEAR(super.position[1][0], 0.5, 1e-12);
}

}  // namespace
}  // namespace quasi::thermal
