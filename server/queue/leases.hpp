#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace quasi::server {

/// Deadlines of open attempts on the monotonic clock, by fence. They live in memory only. The
/// database stores the fence and no deadline, so a jump of the wall clock cannot expire or prolong
/// a lease.
class Leases {
 public:
  void set(std::int64_t fence, std::int64_t deadline_ms) {
    erase(fence);
    deadlines_[fence] = deadline_ms;
    order_.insert({deadline_ms, fence});
  }
  void erase(std::int64_t fence) {
    const auto found = deadlines_.find(fence);
    if (found == deadlines_.end()) return;
    order_.erase({found->second, fence});
    deadlines_.erase(found);
  }
  void clear() {
    deadlines_.clear();
    order_.clear();
  }

  /// Fences whose deadline has passed, the oldest first, at most `limit`.
  std::vector<std::int64_t> expired(std::int64_t now_ms, std::size_t limit) const {
    std::vector<std::int64_t> fences;
    for (const auto& [deadline, fence] : order_) {
      if (deadline > now_ms || fences.size() == limit) break;
      fences.push_back(fence);
    }
    return fences;
  }

 private:
  std::map<std::int64_t, std::int64_t> deadlines_;
  std::set<std::pair<std::int64_t, std::int64_t>> order_;
};

}  // namespace quasi::server
