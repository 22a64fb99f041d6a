#include "workers/thermal/model/force_constants.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace quasi::thermal {

const double* SecondOrder::block(int a, int b, const Index3& cell) const {
  const auto wrap = [](int i, int n) { return ((i % n) + n) % n; };
  const std::int64_t c = (static_cast<std::int64_t>(wrap(cell[2], supercell[2])) * supercell[1] +
                          wrap(cell[1], supercell[1])) *
                             supercell[0] +
                         wrap(cell[0], supercell[0]);
  return &value[((static_cast<std::int64_t>(a) * n_atoms + b) * n_cells() + c) * 9];
}

void SparseForceConstants::append(const std::vector<int>& key, const std::vector<double>& block) {
  atom.insert(atom.end(), key.begin(), key.begin() + order);
  cell.insert(cell.end(), key.begin() + order, key.end());
  tensor.insert(tensor.end(), block.begin(), block.end());
}

double sum_rule_violation(const SparseForceConstants& constants) {
  const int size = constants.tensor_size();
  const int order = constants.order;
  std::map<std::vector<int>, std::vector<double>> sums;
  double largest = 0.0;
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
    std::vector<int> key(constants.atom.begin() + block * order,
                         constants.atom.begin() + block * order + order - 1);
    const auto* cell = &constants.cell[static_cast<std::size_t>(block * (order - 1) * 3)];
    key.insert(key.end(), cell, cell + (order - 2) * 3);
    auto& sum = sums.try_emplace(std::move(key), static_cast<std::size_t>(size), 0.0).first->second;
    for (int e = 0; e < size; ++e) {
      const double value = constants.tensor[static_cast<std::size_t>(block * size + e)];
      sum[static_cast<std::size_t>(e)] += value;
      largest = std::max(largest, std::fabs(value));
    }
  }
  double worst = 0.0;
  for (const auto& [key, sum] : sums)
    for (const double s : sum) worst = std::max(worst, std::fabs(s));
  return largest > 0.0 ? worst / largest : 0.0;
}

}  // namespace quasi::thermal
