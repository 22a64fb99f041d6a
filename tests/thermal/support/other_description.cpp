#include "tests/thermal/support/other_description.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace quasi::thermal::test {
namespace {

Index3 product(const IntMat3& m, const Index3& v) {
  Index3 result{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) result[i] += m[i][j] * v[j];
  return result;
}

IntMat3 transposed(const IntMat3& m) {
  IntMat3 result;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) result[i][j] = m[j][i];
  return result;
}

/// R t R R for a tensor with indices `order`, last index fastest.
std::vector<double> rotated(const Mat3& rotation, int order, const double* tensor) {
  std::size_t size = 1;
  for (int slot = 0; slot < order; ++slot) size *= 3;
  std::vector<double> now(tensor, tensor + size);
  for (std::size_t stride = 1; stride < size; stride *= 3) {
    std::vector<double> next(size, 0.0);
    for (std::size_t e = 0; e < size; ++e) {
      const std::size_t index = e / stride % 3;
      for (std::size_t x = 0; x < 3; ++x)
        next[e] += rotation[index][x] * now[e - index * stride + x * stride];
    }
    now.swap(next);
  }
  return now;
}

Mat3 rotated(const Mat3& rotation, const Mat3& t) { return rotation * t * transpose(rotation); }

class Translator {
 public:
  Translator(const OtherDescription& other, const Crystal& crystal)
      : other_(other), n_atoms_(crystal.n_atoms()) {
    Mat3 cell;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) cell[i][j] = other.cell[i][j];
    lattice_ = cell * crystal.lattice_nm * transpose(other.rotation);
    const Mat3 back = inverse(transpose(cell));
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) cells_[i][j] = static_cast<int>(std::lround(back[i][j]));
  }

  int atom(int old) const { return other_.reverse_atoms ? n_atoms_ - 1 - old : old; }
  Index3 cell(const Index3& old) const { return product(cells_, old); }

  void crystal(Crystal& c) const {
    const Crystal old = c;
    c.lattice_nm = lattice_;
    c.epsilon = rotated(other_.rotation, old.epsilon);
    for (int a = 0; a < n_atoms_; ++a) {
      const int to = atom(a);
      for (int i = 0; i < 3; ++i) {
        c.position[to][i] = 0.0;
        for (int j = 0; j < 3; ++j) c.position[to][i] += cells_[i][j] * old.position[a][j];
      }
      c.type[to] = old.type[a];
      c.mass_amu[to] = old.mass_amu[a];
      c.g_factor[to] = old.g_factor[a];
      if (!old.born.empty()) c.born[to] = rotated(other_.rotation, old.born[a]);
    }
  }

  void second_order(SecondOrder& constants) const {
    const SecondOrder old = constants;
    if (other_.supercell[0] > 0) constants.supercell = other_.supercell;
    const Index3& n = constants.supercell;
    const IntMat3 to_old = transposed(other_.cell);
    for (int a = 0; a < n_atoms_; ++a)
      for (int b = 0; b < n_atoms_; ++b) {
        std::set<const double*> used;
        for (int k = 0; k < n[2]; ++k)
          for (int j = 0; j < n[1]; ++j)
            for (int i = 0; i < n[0]; ++i) {
              const double* from = old.block(a, b, product(to_old, {i, j, k}));
              used.insert(from);
              const std::vector<double> block = rotated(other_.rotation, 2, from);
              const std::size_t pair = static_cast<std::size_t>(atom(a) * n_atoms_ + atom(b));
              const auto cell = static_cast<std::size_t>((k * n[1] + j) * n[0] + i);
              std::copy(block.begin(), block.end(),
                        &constants.value[(pair * old.n_cells() + cell) * 9]);
            }
        ASSERT_EQ(static_cast<std::int64_t>(used.size()), old.n_cells())
            << "the supercell is another torus in the new cell";
      }
  }

  void sparse(SparseForceConstants& constants) const {
    for (int& a : constants.atom) a = atom(a);
    for (std::size_t c = 0; c < constants.cell.size(); c += 3) {
      const Index3 to = cell({constants.cell[c], constants.cell[c + 1], constants.cell[c + 2]});
      std::copy(to.begin(), to.end(), &constants.cell[c]);
    }
    const auto size = static_cast<std::size_t>(constants.tensor_size());
    for (std::size_t at = 0; at < constants.tensor.size(); at += size) {
      const auto block = rotated(other_.rotation, constants.order, &constants.tensor[at]);
      std::copy(block.begin(), block.end(), &constants.tensor[at]);
    }
  }

 private:
  const OtherDescription& other_;
  int n_atoms_;
  Mat3 lattice_{};
  IntMat3 cells_{};  ///< coordinates of old cells along the new axes
};

}  // namespace

Mat3 generic_rotation() {
  const double scale = 1.0 / std::sqrt(14.0);
  const Vec3 n{scale, 2.0 * scale, 3.0 * scale};
  const double c = std::cos(0.7);
  const double s = std::sin(0.7);
  Mat3 r;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[i][j] = (1.0 - c) * n[i] * n[j] + (i == j ? c : 0.0);
  r[0][1] -= s * n[2], r[1][0] += s * n[2];
  r[0][2] += s * n[1], r[2][0] -= s * n[1];
  r[1][2] -= s * n[0], r[2][1] += s * n[0];
  return r;
}

void describe_otherwise(const OtherDescription& other, Deck& deck) {
  const Translator translator(other, deck.crystal);
  translator.second_order(deck.second_order);
  translator.sparse(deck.third_order);
  if (deck.fourth_order) translator.sparse(*deck.fourth_order);
  translator.crystal(deck.crystal);
  if (other.mesh[0] > 0) deck.control.mesh = other.mesh;
  deck.symmetry = find_symmetry(deck.crystal, deck.control.symmetry_options());
}

}  // namespace quasi::thermal::test
