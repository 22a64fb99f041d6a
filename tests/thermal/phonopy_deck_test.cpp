#include "workers/thermal/input/phonopy_deck.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/reference_data.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/phonopy_cells.hpp"
#include "workers/thermal/solver/harmonic.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

/// The Stillinger–Weber example, in its own layout.
struct OwnDeck {
  fs::path directory = test::source_dir() / "examples/thermal/silicon-sw";
  Control control = read_control(directory, {});
  Crystal crystal = make_crystal(control);
  SecondOrder second = read_second_order(directory, control, crystal);
  SparseForceConstants third = read_sparse_force_constants(directory / "FORCE_CONSTANTS_3RD", 3, crystal);
};

/// The same constants as phono3py would write them for a cubic 2×2×2 supercell: not a multiple of the
/// primitive vectors one by one, atoms folded into the cell and in an order of its own.
class PhonopyTwin {
 public:
  PhonopyTwin(const OwnDeck& own, const fs::path& directory, bool compact) : own_(own) {
    find_supercell();
    write_yaml(directory);
    write_fc2(directory, compact);
    write_fc3(directory, compact);
  }

 private:
  void find_supercell() {
    // Cubic axes from the primitive fcc vectors: a2 + a3 − a1 and its permutations, twice.
    const Index3 cubic[3] = {{-2, 2, 2}, {2, -2, 2}, {2, 2, -2}};
    for (int i = 0; i < 3; ++i) supercell_nm_[i] = own_.crystal.lattice_vector_nm(cubic[i]);
    to_super_ = inverse(transpose(supercell_nm_));
    for (int i = -6; i <= 6; ++i)
      for (int j = -6; j <= 6; ++j)
        for (int k = -6; k <= 6; ++k)
          for (int atom = 0; atom < own_.crystal.n_atoms(); ++atom) index_of(atom, {i, j, k}, true);
    std::mt19937 shuffle(7);
    std::vector<Vec3> mixed = position_;
    for (std::size_t n = mixed.size(); n > 1; --n) std::swap(mixed[n - 1], mixed[shuffle() % n]);
    position_ = mixed;
    ASSERT_EQ(position_.size(), 64u);
  }

  Vec3 folded(int atom, const Index3& cell) const {
    Vec3 f = to_super_ * (own_.crystal.cartesian_nm(own_.crystal.position[atom]) + own_.crystal.lattice_vector_nm(cell));
    for (double& x : f) x -= std::floor(x + 1e-9);
    return f;
  }

  int index_of(int atom, const Index3& cell, bool add = false) {
    const Vec3 f = folded(atom, cell);
    for (std::size_t s = 0; s < position_.size(); ++s) {
      Vec3 d = position_[s] - f;
      for (double& x : d) x -= std::round(x);
      if (length(d) < 1e-6) return static_cast<int>(s);
    }
    if (!add) return -1;
    position_.push_back(f);
    return static_cast<int>(position_.size()) - 1;
  }

  void write_cell(std::ostream& out, const char* name, const Mat3& lattice_nm, const std::vector<Vec3>& positions) {
    out << name << ":\n  lattice:\n";
    for (const Vec3& row : lattice_nm) out << "  - [ " << 10 * row[0] << ", " << 10 * row[1] << ", " << 10 * row[2] << " ]\n";
    out << "  points:\n";
    for (const Vec3& p : positions)
      out << "  - symbol: Si\n    coordinates: [ " << p[0] << ", " << p[1] << ", " << p[2] << " ]\n    mass: "
          << own_.crystal.mass_amu[0] << '\n';
  }

  void write_yaml(const fs::path& directory) {
    std::ofstream out(directory / "phono3py_disp.yaml");
    out.precision(15);
    write_cell(out, "primitive_cell", own_.crystal.lattice_nm, own_.crystal.position);
    write_cell(out, "supercell", supercell_nm_, position_);
  }

  void write_fc2(const fs::path& directory, bool compact) {
    const auto n_s = static_cast<std::int64_t>(position_.size());
    const int n_p = own_.crystal.n_atoms();
    const std::int64_t n_rows = compact ? n_p : n_s;
    std::vector<double> fc(static_cast<std::size_t>(n_rows * n_s * 9), 0.0);
    const double unit = own_.control.constants().ev_per_a2_amu_to_omega2;
    const Index3 n = own_.second.supercell;
    // The example's 3×3×3 table holds each pair within reach once: −1 … 1 cells.
    for (int p = 0; p < n_p; ++p)
      for (const auto& origin : origins(p, compact))
        for (int other = 0; other < n_p; ++other)
          for (int i = -(n[0] / 2); i <= n[0] / 2; ++i)
            for (int j = -(n[1] / 2); j <= n[1] / 2; ++j)
              for (int k = -(n[2] / 2); k <= n[2] / 2; ++k) {
                const double* block = own_.second.block(other, p, {i, j, k});
                const int s = index_of(other, {i + origin.cell[0], j + origin.cell[1], k + origin.cell[2]});
                for (int a = 0; a < 3; ++a)
                  for (int b = 0; b < 3; ++b) fc[((origin.row * n_s + s) * 3 + a) * 3 + b] += block[b * 3 + a] / unit;
              }
    H5Writer out(directory / "fc2.hdf5");
    out.write("/force_constants", fc, {n_rows, n_s, 3, 3}, "eV/angstrom^2");
    write_map(out);
    out.commit();
  }

  void write_fc3(const fs::path& directory, bool compact) {
    const auto n_s = static_cast<std::int64_t>(position_.size());
    const int n_p = own_.crystal.n_atoms();
    const std::int64_t n_rows = compact ? n_p : n_s;
    std::vector<double> fc(static_cast<std::size_t>(n_rows * n_s * n_s * 27), 0.0);
    for (std::int64_t block = 0; block < own_.third.n_blocks(); ++block) {
      const int* atom = &own_.third.atom[block * 3];
      const int* cell = &own_.third.cell[block * 6];
      for (const auto& origin : origins(atom[0], compact)) {
        const int j = index_of(atom[1], {cell[0] + origin.cell[0], cell[1] + origin.cell[1], cell[2] + origin.cell[2]});
        const int k = index_of(atom[2], {cell[3] + origin.cell[0], cell[4] + origin.cell[1], cell[5] + origin.cell[2]});
        for (int e = 0; e < 27; ++e)
          fc[((origin.row * n_s + j) * n_s + k) * 27 + e] += own_.third.tensor[block * 27 + e];
      }
    }
    H5Writer out(directory / "fc3.hdf5");
    out.write("/fc3", fc, {n_rows, n_s, n_s, 3, 3, 3}, "eV/angstrom^3");
    write_map(out);
    out.commit();
  }

  struct Origin {
    std::int64_t row;
    Index3 cell;
  };
  /// Rows of the dataset whose centre is an atom of this kind, and the cell it stands in.
  std::vector<Origin> origins(int atom, bool compact) {
    if (compact) return {{atom, {0, 0, 0}}};
    std::vector<Origin> all;
    std::vector<char> seen(position_.size(), 0);
    for (int i = -6; i <= 6; ++i)
      for (int j = -6; j <= 6; ++j)
        for (int k = -6; k <= 6; ++k) {
          const int s = index_of(atom, {i, j, k});
          if (seen[s]) continue;
          seen[s] = 1;
          all.push_back({s, {i, j, k}});
        }
    return all;
  }
  void write_map(H5Writer& out) {
    std::vector<std::int64_t> p2s;
    for (int p = 0; p < own_.crystal.n_atoms(); ++p) p2s.push_back(index_of(p, {0, 0, 0}));
    out.write("/p2s_map", p2s, {static_cast<std::int64_t>(p2s.size())}, "1");
  }

  const OwnDeck& own_;
  Mat3 supercell_nm_{};
  Mat3 to_super_{};
  std::vector<Vec3> position_;
};

class PhonopyDeckTest : public testing::TestWithParam<bool> {
 protected:
  test::TemporaryDirectory directory_;
  OwnDeck own_;
};

// Two layouts of one potential: D(q) anywhere equal to rounding of the files' 15 digits.
TEST_P(PhonopyDeckTest, GivesTheSameDynamicalMatrices) {
  const PhonopyTwin twin(own_, directory_.path(), GetParam());
  ASSERT_TRUE(is_phonopy_deck(directory_.path()));
  const PhonopyDeck deck = read_phonopy_deck(directory_.path(), {{"ngrid", "4 4 4"}, {"T", "300"}});
  const DynamicalMatrixBuilder ours(own_.crystal, own_.second, own_.control);
  const DynamicalMatrixBuilder theirs(deck.crystal, deck.second, deck.control);
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (int draw = 0; draw < 20; ++draw) {
    const Vec3 q{uniform(random), uniform(random), uniform(random)};
    const auto a = ours.at(q, true);
    const auto b = theirs.at(q, true);
    for (std::size_t e = 0; e < a.d.size(); ++e) EXPECT_LT(std::abs(a.d[e] - b.d[e]), 1e-8 * 9000.0);
    for (int g = 0; g < 3; ++g)
      for (std::size_t e = 0; e < a.d.size(); ++e)
        EXPECT_LT(std::abs(a.gradient[g][e] - b.gradient[g][e]), 1e-8 * 9000.0);
  }
}

// The same sparse third order, block by block.
TEST_P(PhonopyDeckTest, GivesTheSameThirdOrder) {
  const PhonopyTwin twin(own_, directory_.path(), GetParam());
  const PhonopyDeck deck = read_phonopy_deck(directory_.path(), {{"ngrid", "4 4 4"}, {"T", "300"}});
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
      EXPECT_NEAR(deck.third->tensor[block * 27 + e], own_.third.tensor[found->second * 27 + e], 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, PhonopyDeckTest, testing::Values(false, true),
                         [](const auto& rows) { return rows.param ? "Compact" : "Full"; });

TEST(PhonopyDeckErrors, NameFileKeyAndRemedy) {
  const test::TemporaryDirectory directory;
  const OwnDeck own;
  const PhonopyTwin twin(own, directory.path(), true);
  const auto message = [&](const std::vector<Setting>& settings) -> std::string {
    try {
      read_phonopy_deck(directory.path(), settings);
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_NE(message({}).find("--set ngrid="), std::string::npos);
  EXPECT_NE(message({{"ngrid", "4 4 4"}, {"scalebraod", "1"}, {"T", "300"}}).find("scalebroad"), std::string::npos);
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

// BORN lists symmetry-distinct atoms; the others follow by the space group. In a hexagonal cell with
// four equivalent atoms one uniaxial tensor must appear four times.
TEST(PhonopyCells, SpreadBornChargesOverEquivalentAtoms) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "POSCAR") << "hexagonal\n1.0\n 3.84 0 0\n -1.92 3.3255375 0\n 0 0 6.27\nSi\n4\nDirect\n"
                                                " 0.3333333333333333 0.6666666666666666 0.0625\n"
                                                " 0.6666666666666666 0.3333333333333333 0.5625\n"
                                                " 0.3333333333333333 0.6666666666666666 0.4375\n"
                                                " 0.6666666666666666 0.3333333333333333 0.9375\n";
  std::ofstream(directory.path() / "BORN") << "14.4\n 11 0 0 0 11 0 0 0 12\n 0.5 0 0 0 0.5 0 0 0 -0.25\n";
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
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "POSCAR";
  std::ofstream(path) << "NaCl\n-44.0\n 0 1 1\n 1 0 1\n 1 1 0\nNa Cl\n1 1\nSelective dynamics\nCartesian\n 0 0 0 T T T\n 1 0 0 F F F\n";
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
