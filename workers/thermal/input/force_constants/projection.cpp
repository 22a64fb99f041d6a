#include "workers/thermal/input/force_constants/projection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

namespace quasi::thermal {
namespace {

constexpr double kGoal = 1e-10;
constexpr int kMostSweeps = 2000;

using Key = std::vector<int>;  ///< atoms, then cells of slots 2 to n

/// Blocks with the exchanges of their slots.
class Projection {
 public:
  explicit Projection(const SparseForceConstants& constants)
      : order_(constants.order), size_(static_cast<std::size_t>(constants.tensor_size())) {
    std::vector<int> slots(static_cast<std::size_t>(order_));
    std::iota(slots.begin(), slots.end(), 0);
    do {
      exchanges_.push_back(slots);
      elements_.push_back(element_map(slots));
    } while (std::next_permutation(slots.begin(), slots.end()));
    for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
      Key key(constants.atom.begin() + block * order_,
              constants.atom.begin() + (block + 1) * order_);
      const auto cell = constants.cell.begin() + block * (order_ - 1) * 3;
      key.insert(key.end(), cell, cell + (order_ - 1) * 3);
      const auto tensor = constants.tensor.begin() + block * static_cast<std::int64_t>(size_);
      auto& sum = blocks_.try_emplace(key, size_, 0.0).first->second;
      std::transform(sum.begin(), sum.end(), tensor, sum.begin(), std::plus<>());
    }
    // A tuple that is not listed has twins that are, and takes part with the value 0.
    std::vector<Key> keys;
    for (const auto& [key, tensor] : blocks_) keys.push_back(key);
    for (const Key& key : keys)
      for (const auto& exchange : exchanges_)
        blocks_.try_emplace(exchanged(key, exchange), size_, 0.0);
    number_blocks();
  }

  /// Replaces all blocks by the mean over the exchanges of their slots.
  void symmetrise() {
    std::vector<double> mean(values_.size(), 0.0);
    const double share = 1.0 / static_cast<double>(exchanges_.size());
    for (std::size_t x = 0; x < exchanges_.size(); ++x)
      for (std::size_t block = 0; block < n_blocks(); ++block) {
        const std::size_t twin = twin_[x * n_blocks() + block];
        for (std::size_t e = 0; e < size_; ++e)
          mean[twin * size_ + elements_[x][e]] += share * values_[block * size_ + e];
      }
    values_ = std::move(mean);
  }
  /// Subtracts the mean over the last atom from every group of blocks. Returns the largest sum.
  double subtract_sums() {
    double largest = 0.0;
    for (const auto& group : groups_)
      for (std::size_t e = 0; e < size_; ++e) {
        double sum = 0.0;
        for (const std::size_t block : group) sum += values_[block * size_ + e];
        largest = std::max(largest, std::fabs(sum));
        const double mean = sum / static_cast<double>(group.size());
        for (const std::size_t block : group) values_[block * size_ + e] -= mean;
      }
    return largest;
  }
  const std::vector<double>& values() const { return values_; }
  void store(SparseForceConstants& constants) const {
    SparseForceConstants result{.order = order_, .blocks_read = constants.blocks_read};
    std::size_t block = 0;
    for (const auto& [key, old] : blocks_) {
      const auto first = values_.begin() + static_cast<std::int64_t>(block++ * size_);
      result.append(key, {first, first + static_cast<std::int64_t>(size_)});
    }
    constants = std::move(result);
  }

 private:
  std::size_t n_blocks() const { return values_.size() / size_; }
  /// Returns the element to which each element of a tensor moves when slot i becomes slot[i].
  std::vector<std::size_t> element_map(const std::vector<int>& slots) const {
    std::vector<std::size_t> map(size_);
    for (std::size_t e = 0; e < size_; ++e) {
      std::vector<std::size_t> index(slots.size()), moved(slots.size());
      std::size_t rest = e;
      for (std::size_t i = slots.size(); i-- > 0; rest /= 3) index[i] = rest % 3;
      for (std::size_t i = 0; i < slots.size(); ++i)
        moved[static_cast<std::size_t>(slots[i])] = index[i];
      map[e] = 0;
      for (const std::size_t i : moved) map[e] = 3 * map[e] + i;
    }
    return map;
  }
  Key exchanged(const Key& key, const std::vector<int>& slots) const {
    const auto n = slots.size();
    std::vector<std::array<int, 4>> sites(n);
    for (std::size_t i = 0; i < n; ++i) {
      auto& site = sites[static_cast<std::size_t>(slots[i])];
      site = {key[i], 0, 0, 0};
      for (std::size_t d = 0; d < 3 && i > 0; ++d) site[1 + d] = key[n + 3 * (i - 1) + d];
    }
    Key result;
    for (const auto& site : sites) result.push_back(site[0]);
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t d = 1; d < 4; ++d) result.push_back(sites[i][d] - sites[0][d]);
    return result;
  }
  void number_blocks() {
    std::map<Key, std::size_t> number;
    std::map<Key, std::vector<std::size_t>> groups;
    for (const auto& [key, tensor] : blocks_) {
      const std::size_t block = number.size();
      number.emplace(key, block);
      Key others(key.begin(), key.begin() + order_ - 1);
      others.insert(others.end(), key.begin() + order_, key.end() - 3);
      groups[others].push_back(block);
      values_.insert(values_.end(), tensor.begin(), tensor.end());
    }
    for (auto& [key, group] : groups) groups_.push_back(std::move(group));
    for (const auto& exchange : exchanges_)
      for (const auto& [key, tensor] : blocks_)
        twin_.push_back(number.at(exchanged(key, exchange)));
  }

  int order_;
  std::size_t size_;
  std::map<Key, std::vector<double>> blocks_;
  std::vector<std::vector<int>> exchanges_;         ///< slot i becomes slot [i]
  std::vector<std::vector<std::size_t>> elements_;  ///< [exchange][element]
  std::vector<std::size_t> twin_;                   ///< [exchange][block]
  std::vector<std::vector<std::size_t>> groups_;    ///< blocks that differ in the last atom alone
  std::vector<double> values_;                      ///< [block][element]
};

double norm(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace

ProjectionChange project_rules(SparseForceConstants& constants) {
  Projection projection(constants);
  const std::vector<double> before = projection.values();
  double largest = 0.0;
  for (const double x : before) largest = std::max(largest, std::fabs(x));
  ProjectionChange change;
  if (largest == 0.0) return change;
  for (change.sweeps = 1; change.sweeps <= kMostSweeps; ++change.sweeps) {
    projection.symmetrise();
    change.sum_rule = projection.subtract_sums() / largest;
    if (change.sum_rule < kGoal) break;
  }
  projection.symmetrise();
  std::vector<double> apart = projection.values();
  std::transform(apart.begin(), apart.end(), before.begin(), apart.begin(), std::minus<>());
  change.relative = norm(apart) / norm(before);
  projection.store(constants);
  return change;
}

}  // namespace quasi::thermal
