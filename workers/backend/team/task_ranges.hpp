#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace quasi {

/// Hands out tasks to the devices of a process. Every device has a range of neighbouring tasks and
/// takes them in order. Thread-safe.
class TaskRanges {
 public:
  /// Order of the tasks. kNeighbours: a device takes the tasks of its own range alone. kBalanced: a
  /// device with an empty range takes the last task of the device with most tasks left.
  enum class Order { kNeighbours, kBalanced };
  /// A range [first, end) of tasks.
  using Range = std::pair<std::int64_t, std::int64_t>;

  /// @param ranges  one range for each device
  TaskRanges(std::vector<Range> ranges, Order order) : ranges_(std::move(ranges)), order_(order) {}

  /// Returns the next task of `device`, or no value when no task is left for it.
  std::optional<std::int64_t> next(std::size_t device);

 private:
  std::mutex mutex_;
  std::vector<Range> ranges_;
  Order order_;
};

}  // namespace quasi
