#include "workers/thermal/input/phonopy/phonopy_deck.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/phonopy_twin.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

using test::OwnDeck;
using test::PhonopyTwin;

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
