#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

/// Numbers the devices of all ranks of a job in the order of the ranks, and divides tasks among
/// them in ranges of neighbours.
class TeamLayout {
 public:
  /// Exchanges the numbers of devices. Collective. @param n_own  number of devices of this rank
  TeamLayout(std::size_t n_own, Ranks& ranks) : ranks_(&ranks), first_of_rank_{0} {
    for (const auto& of_rank : ranks.gather({static_cast<double>(n_own)}))
      first_of_rank_.push_back(first_of_rank_.back() + static_cast<std::int64_t>(of_rank.at(0)));
  }

  Ranks& ranks() const { return *ranks_; }
  /// Returns the number of devices of all ranks.
  std::int64_t size() const { return first_of_rank_.back(); }
  /// Returns the number of the first device of a rank.
  std::int64_t first_of(int rank) const { return first_of_rank_[static_cast<std::size_t>(rank)]; }
  /// Returns the number of the first device of this rank.
  std::int64_t first_own() const { return first_of(ranks_->rank()); }
  std::int64_t n_own() const { return first_of(ranks_->rank() + 1) - first_own(); }

  /// Returns the number of the device that owns `task` of [0, count). Ranges of tasks follow the
  /// order of the devices and differ by at most one in length.
  std::int64_t device_of(std::int64_t task, std::int64_t count) const;
  /// Returns the rank of the device that owns `task` of [0, count).
  int owner(std::int64_t task, std::int64_t count) const;
  bool owns(std::int64_t task, std::int64_t count) const {
    return owner(task, count) == ranks_->rank();
  }

 private:
  Ranks* ranks_;
  std::vector<std::int64_t> first_of_rank_;  ///< [ranks + 1]
};

}  // namespace quasi
