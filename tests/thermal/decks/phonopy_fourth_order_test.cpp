// Tests the dense fourth order of phono3py, fc4.hdf5, against the sparse file of the same crystal.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/input/phonopy/phonopy_deck.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

using Tuple = std::vector<int>;  ///< atoms, then cells of slots 2 to 4
using Blocks = std::map<Tuple, std::vector<double>>;

Blocks blocks_of(const SparseForceConstants& constants) {
  Blocks blocks;
  for (std::int64_t b = 0; b < constants.n_blocks(); ++b) {
    Tuple key(constants.atom.begin() + 4 * b, constants.atom.begin() + 4 * b + 4);
    key.insert(key.end(), constants.cell.begin() + 9 * b, constants.cell.begin() + 9 * b + 9);
    std::vector<double> tensor(constants.tensor.begin() + 81 * b,
                               constants.tensor.begin() + 81 * b + 81);
    if (std::any_of(tensor.begin(), tensor.end(), [](double x) { return x != 0.0; }))
      blocks[key] = std::move(tensor);
  }
  return blocks;
}

/// The cubic crystal of quartic bonds, which has one atom, in the files of phono3py with a
/// supercell of n³ cells. The supercell lists its last cell first.
class QuarticFiles {
 public:
  QuarticFiles(const fs::path& directory, int n) : directory_(directory), n_(n) {
    const fs::path own = test::model("quartic-cubic");
    const Control control = read_control(own, std::vector<Setting>{});
    crystal_ = make_crystal(control);
    sparse_ = read_sparse_force_constants(own / "FORCE_CONSTANTS_4TH", 4, crystal_);
    fs::copy(own / "FORCE_CONSTANTS_3RD", directory / "FORCE_CONSTANTS_3RD");
    write_yaml();
    write_second(read_second_order(own, control, crystal_),
                 control.constants().ev_per_a2_amu_to_omega2);
  }

  const SparseForceConstants& sparse() const { return sparse_; }
  std::int64_t n_atoms() const { return static_cast<std::int64_t>(n_) * n_ * n_; }

  /// Writes fc4.hdf5 with one row, whose displacements are counted from the last atom.
  void write_fourth() const {
    const std::int64_t n_s = n_atoms();
    std::vector<double> fc(static_cast<std::size_t>(n_s * n_s * n_s * 81), 0.0);
    for (const auto& [key, tensor] : blocks_of(sparse_)) {
      std::int64_t at = 0;
      for (int slot = 0; slot < 3; ++slot)
        at = at * n_s + index_of({key[4 + 3 * slot], key[5 + 3 * slot], key[6 + 3 * slot]});
      for (std::int64_t e = 0; e < 81; ++e)
        fc[static_cast<std::size_t>(81 * at + e)] += tensor[static_cast<std::size_t>(e)];
    }
    H5Writer out(directory_ / "fc4.hdf5");
    out.write("/fc4", fc, {1, n_s, n_s, n_s, 3, 3, 3, 3}, "eV/angstrom^4");
    out.write("/p2s_map", std::vector<std::int64_t>{index_of({0, 0, 0})}, {1}, "1");
    out.commit();
  }

  PhonopyDeck read(const std::string& centres = "mean") const {
    return read_phonopy_deck(
        directory_,
        assignments_of(
            {{"ngrid", "4 4 4"}, {"T", "300"}, {"four_phonon", "T"}, {"fc3_centres", centres}}));
  }

 private:
  std::int64_t index_of(const Index3& cell) const {
    std::int64_t at = 0;
    for (const int x : cell) at = at * n_ + (x % n_ + n_) % n_;
    return n_atoms() - 1 - at;
  }

  void write_yaml() const {
    std::ofstream out(directory_ / "phono3py_disp.yaml");
    out.precision(17);
    const auto cell = [&](const char* name, int repeats) {
      out << name << ":\n  lattice:\n";
      for (const Vec3& row : crystal_.lattice_nm) {
        const double unit = 10.0 * repeats;
        out << "  - [ " << unit * row[0] << ", " << unit * row[1] << ", " << unit * row[2]
            << " ]\n";
      }
      out << "  points:\n";
      const int count = repeats * repeats * repeats;
      for (int i = count - 1; i >= 0; --i)
        out << "  - symbol: Si\n    coordinates: [ " << double(i / repeats / repeats) / repeats
            << ", " << double(i / repeats % repeats) / repeats << ", "
            << double(i % repeats) / repeats << " ]\n    mass: " << crystal_.mass_amu[0] << '\n';
    };
    cell("primitive_cell", 1);
    cell("supercell", n_);
  }

  void write_second(const SecondOrder& second, double unit) const {
    std::vector<double> fc(static_cast<std::size_t>(n_atoms() * 9), 0.0);
    for (int i = -1; i <= 1; ++i)
      for (int j = -1; j <= 1; ++j)
        for (int k = -1; k <= 1; ++k)
          for (int e = 0; e < 9; ++e)
            fc[static_cast<std::size_t>(9 * index_of({i, j, k}) + e)] +=
                second.block(0, 0, {i, j, k})[e] / unit;
    H5Writer out(directory_ / "fc2.hdf5");
    out.write("/force_constants", fc, {1, n_atoms(), 3, 3}, "eV/angstrom^2");
    out.write("/p2s_map", std::vector<std::int64_t>{index_of({0, 0, 0})}, {1}, "1");
    out.commit();
  }

  fs::path directory_;
  int n_;
  Crystal crystal_;
  SparseForceConstants sparse_;
};

/// Largest difference between the blocks and themselves with slots 0 and 1 exchanged, of the
/// largest element.
double exchange_violation(const Blocks& blocks) {
  double largest = 0.0, worst = 0.0;
  for (const auto& [key, tensor] : blocks) {
    Tuple other = key;
    std::swap(other[0], other[1]);
    for (std::size_t d = 0; d < 3; ++d) {
      const int shift = key[4 + d];
      other[4 + d] = -shift;
      other[7 + d] -= shift;
      other[10 + d] -= shift;
    }
    const auto twin = blocks.find(other);
    for (std::size_t e = 0; e < 81; ++e) {
      const std::size_t a = e / 27, b = e / 9 % 3;
      const double exchanged = twin == blocks.end() ? 0.0 : twin->second[e % 9 + 27 * b + 9 * a];
      largest = std::max(largest, std::fabs(tensor[e]));
      worst = std::max(worst, std::fabs(tensor[e] - exchanged));
    }
  }
  return worst / largest;
}

// One crystal has equal blocks from fc4.hdf5 and from FORCE_CONSTANTS_4TH. Bonds of neighbours have
// one nearest image in a supercell of 3³, so that both rules of centres give them. The limit of
// 1e-10 eV/Å⁴ is rounding of elements up to 60.
TEST(PhonopyFourthOrder, DenseAndSparseFilesHaveEqualBlocks) {
  const quasi::test::TemporaryDirectory place;
  const QuarticFiles files(place.path(), 3);
  files.write_fourth();
  const Blocks wanted = blocks_of(files.sparse());
  ASSERT_GT(wanted.size(), 20u);
  for (const char* centres : {"mean", "first"}) {
    const PhonopyDeck deck = files.read(centres);
    ASSERT_TRUE(deck.fourth);
    EXPECT_EQ(deck.fourth_name, "fc4.hdf5");
    EXPECT_LT(*deck.fourth->tensor_sum_rule, 1e-12);
    const Blocks found = blocks_of(*deck.fourth);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [key, tensor] : wanted) {
      ASSERT_TRUE(found.contains(key));
      for (std::size_t e = 0; e < 81; ++e) EXPECT_NEAR(found.at(key)[e], tensor[e], 1e-10);
    }
  }
}

// In a supercell of 2³ the neighbours on either side are one atom. Images that are nearest to the
// first atom break the exchange of atoms, and the mean over the four atoms restores it.
TEST(PhonopyFourthOrder, MeanOverCentresKeepsTheExchange) {
  const quasi::test::TemporaryDirectory place;
  const QuarticFiles files(place.path(), 2);
  files.write_fourth();
  EXPECT_GT(exchange_violation(blocks_of(*files.read("first").fourth)), 0.01);
  EXPECT_LT(exchange_violation(blocks_of(*files.read("mean").fourth)), 1e-14);
}

TEST(PhonopyFourthOrder, MissingAndWrongFilesAreNamed) {
  const quasi::test::TemporaryDirectory place;
  const QuarticFiles files(place.path(), 3);
  const auto message = [&] {
    try {
      files.read();
    } catch (const InvalidInput& refusal) {
      return std::string(refusal.what());
    }
    return std::string("no refusal");
  };
  for (const char* part : {"fc4.hdf5", "FORCE_CONSTANTS_4TH", "four_phonon"})
    EXPECT_NE(message().find(part), std::string::npos) << message();
  H5Writer out(place.path() / "fc4.hdf5");
  out.write("/fc4", std::vector<double>(81 * 8, 0.0), {1, 2, 2, 2, 3, 3, 3, 3}, "eV/angstrom^4");
  out.commit();
  for (const char* part : {"fc4.hdf5", "1×2×2×2×3×3×3×3", "27 atoms"})
    EXPECT_NE(message().find(part), std::string::npos) << message();
}

}  // namespace
}  // namespace quasi::thermal
