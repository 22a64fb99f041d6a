#include "workers/backend/team/team_layout.hpp"

#include <algorithm>

namespace quasi {

std::int64_t TeamLayout::device_of(std::int64_t task, std::int64_t count) const {
  const std::int64_t n = std::min(size(), count);
  std::int64_t device = 0;
  while ((device + 1) * count / n <= task) ++device;
  return device;
}

int TeamLayout::owner(std::int64_t task, std::int64_t count) const {
  const auto after =
      std::upper_bound(first_of_rank_.begin(), first_of_rank_.end(), device_of(task, count));
  return static_cast<int>(after - first_of_rank_.begin()) - 1;
}

}  // namespace quasi
