#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Second-order constants of a supercell of n1·n2·n3 primitive cells in (rad/ps)² amu.
///
/// value(κ, κ', cell)[α][β] couples atom κ in the given cell with atom κ' in the origin cell, the
/// pairing of docs/theory/thermal.md 3.1. The vector between them is r_κ + R − r_κ'.
///
/// Decks of other supercells give explicit `images` instead, which are pairs weighted by their
/// share among equidistant images. Then `supercell` and `value` are unused.
struct SecondOrder {
  struct Image {
    int atom = 0;   ///< κ, in `cell`
    int other = 0;  ///< κ', in the origin cell
    Index3 cell{0, 0, 0};
    double weight = 0.0;            ///< one over the number of equidistant images
    std::array<double, 9> value{};  ///< [α][β] without the weight, (rad/ps)² amu
  };
  Index3 supercell{1, 1, 1};
  int n_atoms = 0;
  std::vector<double> value;      ///< [κ][κ'][cell, first axis fastest][α][β], (rad/ps)² amu
  double raw_acoustic_sum = 0.0;  ///< largest |Σ over κ', cell| / largest |element|, as read
  std::vector<Image> images;
  std::int64_t image_cells = 0;  ///< primitive cells in the supercell of the images; 0: the images
                                 ///< are single pairs without a supercell
  /// Added to the pairs of any layout, with weight 1: the change of the constants by thermal motion
  /// (docs/theory/thermal.md 14). Dipoles and checks of the layout ignore it.
  std::vector<Image> correction;
  IntMat3 image_lattice{};  ///< row i: vector i of that supercell in lattice coordinates

  std::int64_t n_cells() const {
    if (!images.empty()) return image_cells;
    return static_cast<std::int64_t>(supercell[0]) * supercell[1] * supercell[2];
  }
  /// Returns the 9 elements of a block. The cell is taken modulo the supercell.
  const double* block(int atom, int other, const Index3& cell) const;
};

/// Sparse constants of third (Φ) or fourth (Ψ) order, with one block for each atom tuple. Atom 1 is
/// in the origin cell. Duplicate tuples have been summed, and blocks are sorted by (atoms, cells).
struct SparseForceConstants {
  int order = 3;          ///< 3 or 4
  std::vector<int> atom;  ///< [n_blocks][order], from zero
  std::vector<int> cell;  ///< [n_blocks][order − 1][3], lattice coordinates of R_2, R_3 (, R_4)
  std::vector<double> tensor;    ///< [n_blocks][3^order], last index fastest; eV/Å^order
  std::int64_t blocks_read = 0;  ///< before duplicates were summed
  /// Violation of the acoustic sum rule in the dense tensor of a supercell that the blocks were
  /// made of. Its images may break the rule though the tensor obeys it.
  std::optional<double> tensor_sum_rule;

  /// Adds a block after the others. @param key  atoms, then cells of slots 2 to `order`
  void append(const std::vector<int>& key, const std::vector<double>& block);
  std::int64_t n_blocks() const { return static_cast<std::int64_t>(atom.size()) / order; }
  int tensor_size() const { return order == 3 ? 27 : 81; }
};

/// Returns the violation of the acoustic sum rule, largest |Σ over the last atom and cell| /
/// largest |element|. Σ runs over the last slot at fixed other slots.
double sum_rule_violation(const SparseForceConstants& constants);

}  // namespace quasi::thermal
