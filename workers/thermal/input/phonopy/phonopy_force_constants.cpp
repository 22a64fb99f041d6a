#include "workers/thermal/input/phonopy/phonopy_force_constants.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/force_constants/text_scanner.hpp"
#include "workers/thermal/input/phonopy/phonopy_supercell_map.hpp"

namespace quasi::thermal {
namespace {

/// A dense second order as a file holds it, with its unit in eV/Å².
struct DenseSecondOrder {
  std::string dataset;
  DatasetShape shape;
  std::vector<double> values;
  double unit = 1.0;
};

/// Reads the text FORCE_CONSTANTS: one or two extents, then "i j" and 3×3 numbers for every pair. A
/// compact file lists the rows of the supercell atoms that stand for the primitive cell.
DenseSecondOrder read_text_second_order(const std::filesystem::path& file,
                                        const PhonopyUnits& units) {
  TextScanner in(file);
  const auto head = in.line_words("the number of atoms");
  if (head.size() > 2) in.fail("expected one or two integers (rows and columns)");
  std::vector<std::int64_t> extents;
  for (const std::string_view word : head) {
    std::int64_t n = 0;
    for (const char c : word) n = c < '0' || c > '9' || n > 1000000 ? -1 : 10 * n + (c - '0');
    if (n < 1) in.fail("the numbers of rows and columns must be positive integers");
    extents.push_back(n);
  }
  const std::int64_t rows = extents.front(), columns = extents.back();
  if (static_cast<double>(rows) * static_cast<double>(columns) * 20.0 >
      static_cast<double>(in.bytes_left()))
    in.fail("the file is too short for " + std::to_string(rows) + " × " + std::to_string(columns) +
            " blocks; is it truncated?");
  DenseSecondOrder result{.dataset = "FORCE_CONSTANTS",
                          .shape = {{rows, columns, 3, 3}, {}},
                          .values = {},
                          .unit = units.constants(2)};
  result.values.resize(static_cast<std::size_t>(rows * columns * 9));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t atom = in.integer("a block's first atom", 1, columns) - 1;
      in.integer("a block's second atom", column + 1, column + 1);
      if (column == 0 && rows < columns) result.shape.p2s.push_back(atom);
      for (int e = 0; e < 9; ++e)
        result.values[static_cast<std::size_t>((row * columns + column) * 9 + e)] =
            in.real("a force constant");
    }
  return result;
}

DenseSecondOrder read_dense_second_order(const std::filesystem::path& file,
                                         const PhonopyUnits& units) {
  if (file.extension() != ".hdf5") return read_text_second_order(file, units);
  const H5Reader reader(file);
  const std::string dataset = reader.has("/force_constants") ? "/force_constants" : "/fc2";
  return {dataset, shape_of(reader, dataset), reader.doubles(dataset),
          unit_of(reader, file.filename().string(), 2, units)};
}

/// Blocks of third order by {atoms, cell of the second, cell of the third}.
using BlockKey = std::array<int, 9>;
using Blocks3 = std::map<BlockKey, std::array<double, 27>>;

/// Adds `share` of a block to that of `key`. Index i of the block goes to slot `slot[i]`.
void add_block(const BlockKey& key, const std::array<int, 3>& slot, double share,
               const std::array<double, 27>& block, Blocks3& blocks) {
  auto& sum = blocks[key];
  for (int a = 0; a < 27; ++a) {
    const std::array<int, 3> index{a / 9, a / 3 % 3, a % 3};
    std::array<int, 3> moved{};
    for (std::size_t i = 0; i < 3; ++i) moved[static_cast<std::size_t>(slot[i])] = index[i];
    sum[static_cast<std::size_t>(moved[0] * 9 + moved[1] * 3 + moved[2])] +=
        share * block[static_cast<std::size_t>(a)];
  }
}

/// Returns the mean of the blocks whose images are nearest to the first, second and third atom. The
/// latter two are the former with slots exchanged (docs/theory/thermal.md 1.6).
Blocks3 mean_over_centres(const Blocks3& first) {
  Blocks3 mean;
  constexpr double kShare = 1.0 / 3.0;
  for (const auto& [key, block] : first) {
    const auto& [a, b, c, bx, by, bz, cx, cy, cz] = key;
    add_block(key, {0, 1, 2}, kShare, block, mean);
    add_block({b, a, c, -bx, -by, -bz, cx - bx, cy - by, cz - bz}, {1, 0, 2}, kShare, block, mean);
    add_block({c, b, a, bx - cx, by - cy, bz - cz, -cx, -cy, -cz}, {2, 1, 0}, kShare, block, mean);
  }
  return mean;
}

/// Sums the dense rows of a tensor over the last atom and keeps the largest sum and element.
class TensorSumRule {
 public:
  /// @param row  [second atom][third atom][27]
  void add(const std::vector<double>& row, std::int64_t n_atoms) {
    for (std::int64_t j = 0; j < n_atoms; ++j) {
      std::array<double, 27> sum{};
      for (std::int64_t k = 0; k < n_atoms; ++k)
        for (std::size_t e = 0; e < 27; ++e) {
          const double value = row[static_cast<std::size_t>((j * n_atoms + k) * 27) + e];
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

}  // namespace

SecondOrder read_fc2(const std::filesystem::path& file, const PhonopySupercell& cells,
                     double unit) {
  const PhonopyCell& primitive = cells.primitive;
  const PhonopyCell& supercell = cells.supercell;
  const std::string& yaml = cells.source;
  const std::string name = file.filename().string();
  const SupercellMap map = map_supercell(primitive, supercell, yaml);
  const DenseSecondOrder dense = read_dense_second_order(file, cells.units);
  const DatasetRows rows = find_rows(dense.shape, name, dense.dataset, 2, map);
  const auto& values = dense.values;
  require_finite(values, name, dense.dataset);
  unit *= dense.unit;
  const NearestImages images(primitive, map);
  const auto n_s = static_cast<std::int64_t>(map.atom.size());

  SecondOrder result{.n_atoms = primitive.n_atoms(),
                     .value = {},
                     .images = {},
                     .image_cells = map.n_cells,
                     .image_lattice = map.lattice};
  double largest = 0.0;
  double worst_sum = 0.0;
  for (int p = 0; p < primitive.n_atoms(); ++p) {
    double sum[9] = {};
    for (std::int64_t s = 0; s < n_s; ++s) {
      const double* block = &values[static_cast<std::size_t>((rows.row[p] * n_s + s) * 9)];
      for (int e = 0; e < 9; ++e) {
        sum[e] += block[e];
        largest = std::max(largest, std::fabs(block[e]));
      }
      const auto nearest = images.cells(rows.centre[p], static_cast<int>(s));
      for (const Index3& cell : nearest) {
        SecondOrder::Image image{.atom = map.atom[s],
                                 .other = p,
                                 .cell = cell,
                                 .weight = 1.0 / static_cast<double>(nearest.size()),
                                 .value = {}};
        // Φ(p,0; s,R) transposed is Φ(s,R; p,0), the pairing of SecondOrder.
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) image.value[a * 3 + b] = unit * block[b * 3 + a];
        result.images.push_back(image);
      }
    }
    for (const double element : sum) worst_sum = std::max(worst_sum, std::fabs(element));
  }
  result.raw_acoustic_sum = largest > 0.0 ? worst_sum / largest : 0.0;
  return result;
}

SparseForceConstants read_fc3(const std::filesystem::path& file, const PhonopySupercell& cells,
                              TripletCentres centres) {
  const PhonopyCell& primitive = cells.primitive;
  const std::string name = file.filename().string();
  const H5Reader reader(file);
  const SupercellMap map = map_supercell(primitive, cells.supercell, cells.source);
  const DatasetRows rows = find_rows(shape_of(reader, "/fc3"), name, "/fc3", 3, map);
  const double unit = unit_of(reader, name, 3, cells.units);
  const NearestImages images(primitive, map);
  const auto n_s = static_cast<std::int64_t>(map.atom.size());

  Blocks3 blocks;
  TensorSumRule sum_rule;
  SparseForceConstants result{.order = 3, .atom = {}, .cell = {}, .tensor = {}};
  for (int p = 0; p < primitive.n_atoms(); ++p) {
    const std::int64_t start[] = {rows.row[p], 0, 0, 0, 0, 0};
    const std::int64_t count[] = {1, n_s, n_s, 3, 3, 3};
    const auto values = reader.slab("/fc3", start, count);
    require_finite(values, name, "/fc3");
    sum_rule.add(values, n_s);
    std::vector<std::vector<Index3>> nearest;
    for (std::int64_t s = 0; s < n_s; ++s)
      nearest.push_back(images.cells(rows.centre[p], static_cast<int>(s)));
    for (std::int64_t j = 0; j < n_s; ++j)
      for (std::int64_t k = 0; k < n_s; ++k) {
        const double* tensor = &values[static_cast<std::size_t>((j * n_s + k) * 27)];
        if (std::all_of(tensor, tensor + 27, [](double x) { return x == 0.0; })) continue;
        ++result.blocks_read;
        const double share = unit / static_cast<double>(nearest[j].size() * nearest[k].size());
        for (const Index3& rj : nearest[j])
          for (const Index3& rk : nearest[k]) {
            auto& block =
                blocks[{p, map.atom[j], map.atom[k], rj[0], rj[1], rj[2], rk[0], rk[1], rk[2]}];
            for (int e = 0; e < 27; ++e) block[e] += share * tensor[e];
          }
      }
  }
  result.tensor_sum_rule = sum_rule.violation();
  if (centres == TripletCentres::kMean) blocks = mean_over_centres(blocks);
  for (const auto& [key, block] : blocks) {
    result.atom.insert(result.atom.end(), key.begin(), key.begin() + 3);
    result.cell.insert(result.cell.end(), key.begin() + 3, key.end());
    result.tensor.insert(result.tensor.end(), block.begin(), block.end());
  }
  return result;
}

}  // namespace quasi::thermal
