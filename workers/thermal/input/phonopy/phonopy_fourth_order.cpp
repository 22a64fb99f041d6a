#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/phonopy/phonopy_force_constants.hpp"
#include "workers/thermal/input/phonopy/phonopy_supercell_map.hpp"

namespace quasi::thermal {
namespace {

constexpr std::size_t kElements = 81;

/// Blocks of fourth order by {atoms, cells of the second to the fourth}.
using BlockKey = std::array<int, 13>;
using Blocks4 = std::map<BlockKey, std::array<double, kElements>>;

/// Returns the key of a tuple whose slots 0 and `slot` have changed places. The tuple is moved so
/// that its first atom is in the origin cell.
BlockKey exchanged(const BlockKey& key, int slot) {
  std::array<Index3, 4> cell{};
  for (int i = 1; i < 4; ++i) cell[i] = {key[1 + 3 * i], key[2 + 3 * i], key[3 + 3 * i]};
  BlockKey result = key;
  std::swap(result[0], result[slot]);
  std::swap(cell[0], cell[slot]);
  for (int i = 1; i < 4; ++i)
    for (int d = 0; d < 3; ++d) result[1 + 3 * i + d] = cell[i][d] - cell[0][d];
  return result;
}

/// Adds a quarter of a block to that of its tuple with slots 0 and `slot` exchanged.
void add_exchanged(const BlockKey& key, int slot, const std::array<double, kElements>& block,
                   Blocks4& blocks) {
  constexpr int kStride[] = {27, 9, 3, 1};
  auto& sum = blocks[exchanged(key, slot)];
  for (int e = 0; e < static_cast<int>(kElements); ++e) {
    const int a = e / 27, b = e / kStride[slot] % 3;
    const int moved = e + (b - a) * 27 + (a - b) * kStride[slot];
    sum[static_cast<std::size_t>(moved)] += 0.25 * block[static_cast<std::size_t>(e)];
  }
}

/// Returns the mean of the blocks whose images are nearest to each of the four atoms. The latter
/// three are the former with slots exchanged (docs/theory/thermal.md 1.6).
Blocks4 mean_over_centres(const Blocks4& first) {
  Blocks4 mean;
  for (const auto& [key, block] : first)
    for (int slot = 0; slot < 4; ++slot) add_exchanged(key, slot, block, mean);
  return mean;
}

/// Sums dense slabs of a tensor over the last atom and keeps the largest sum and element.
class TensorSumRule {
 public:
  /// @param slab  [third atom][fourth atom][81]
  void add(const std::vector<double>& slab, std::int64_t n_atoms) {
    for (std::int64_t k = 0; k < n_atoms; ++k) {
      std::array<double, kElements> sum{};
      for (std::int64_t l = 0; l < n_atoms; ++l)
        for (std::size_t e = 0; e < kElements; ++e) {
          const double value = slab[static_cast<std::size_t>(k * n_atoms + l) * kElements + e];
          sum[e] += value;
          largest_ = std::max(largest_, std::fabs(value));
        }
      for (const double s : sum) worst_ = std::max(worst_, std::fabs(s));
    }
  }
  double violation() const { return largest_ > 0.0 ? worst_ / largest_ : 0.0; }

 private:
  double largest_ = 0.0, worst_ = 0.0;
};

/// Cells of the four atoms of a dense element, by supercell atom.
struct DenseTuple {
  int first;  ///< atom of the primitive cell
  std::array<std::int64_t, 3> other;
};

/// Shares a dense element out among the nearest images of its atoms.
void add_images(const DenseTuple& tuple, const SupercellMap& map,
                const std::vector<std::vector<Index3>>& nearest, const double* values, double unit,
                Blocks4& blocks) {
  const auto& [j, k, l] = tuple.other;
  const double share =
      unit / static_cast<double>(nearest[j].size() * nearest[k].size() * nearest[l].size());
  for (const Index3& rj : nearest[j])
    for (const Index3& rk : nearest[k])
      for (const Index3& rl : nearest[l]) {
        auto& block = blocks[{tuple.first, map.atom[j], map.atom[k], map.atom[l], rj[0], rj[1],
                              rj[2], rk[0], rk[1], rk[2], rl[0], rl[1], rl[2]}];
        for (std::size_t e = 0; e < kElements; ++e) block[e] += share * values[e];
      }
}

}  // namespace

SparseForceConstants read_fc4(const std::filesystem::path& file, const PhonopySupercell& cells,
                              TripletCentres centres) {
  const PhonopyCell& primitive = cells.primitive;
  const std::string name = file.filename().string();
  const H5Reader reader(file);
  const SupercellMap map = map_supercell(primitive, cells.supercell, cells.source);
  const DatasetRows rows = find_rows(shape_of(reader, "/fc4"), name, "/fc4", 4, map);
  const double unit = unit_of(reader, name, 4, cells.units);
  const NearestImages images(primitive, map);
  const auto n_s = static_cast<std::int64_t>(map.atom.size());

  Blocks4 blocks;
  TensorSumRule sum_rule;
  SparseForceConstants result{.order = 4, .atom = {}, .cell = {}, .tensor = {}};
  for (int p = 0; p < primitive.n_atoms(); ++p) {
    std::vector<std::vector<Index3>> nearest;
    for (std::int64_t s = 0; s < n_s; ++s)
      nearest.push_back(images.cells(rows.centre[p], static_cast<int>(s)));
    for (std::int64_t j = 0; j < n_s; ++j) {
      const std::int64_t start[] = {rows.row[p], j, 0, 0, 0, 0, 0, 0};
      const std::int64_t count[] = {1, 1, n_s, n_s, 3, 3, 3, 3};
      const auto values = reader.slab("/fc4", start, count);
      require_finite(values, name, "/fc4");
      sum_rule.add(values, n_s);
      for (std::int64_t k = 0; k < n_s; ++k)
        for (std::int64_t l = 0; l < n_s; ++l) {
          const double* tensor = &values[static_cast<std::size_t>(k * n_s + l) * kElements];
          if (std::all_of(tensor, tensor + kElements, [](double x) { return x == 0.0; })) continue;
          ++result.blocks_read;
          add_images({p, {j, k, l}}, map, nearest, tensor, unit, blocks);
        }
    }
  }
  result.tensor_sum_rule = sum_rule.violation();
  if (centres == TripletCentres::kMean) blocks = mean_over_centres(blocks);
  for (const auto& [key, block] : blocks) {
    result.atom.insert(result.atom.end(), key.begin(), key.begin() + 4);
    result.cell.insert(result.cell.end(), key.begin() + 4, key.end());
    result.tensor.insert(result.tensor.end(), block.begin(), block.end());
  }
  return result;
}

}  // namespace quasi::thermal
