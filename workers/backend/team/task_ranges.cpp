#include "workers/backend/team/task_ranges.hpp"

#include <algorithm>

namespace quasi {

std::optional<std::int64_t> TaskRanges::next(std::size_t device) {
  const std::lock_guard lock(mutex_);
  Range& own = ranges_[device];
  if (own.first < own.second) return own.first++;
  if (order_ == Order::kNeighbours) return std::nullopt;
  const auto length = [](const Range& range) { return range.second - range.first; };
  const auto longest =
      std::max_element(ranges_.begin(), ranges_.end(),
                       [&](const Range& a, const Range& b) { return length(a) < length(b); });
  if (length(*longest) == 0) return std::nullopt;
  return --longest->second;
}

}  // namespace quasi
