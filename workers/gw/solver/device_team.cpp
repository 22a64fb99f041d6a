#include "workers/gw/solver/device_team.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace quasi::gw {

DeviceTeam::DeviceTeam(const std::vector<Device>& devices, Ranks& ranks) : ranks_(&ranks) {
  for (const Device& device : devices) {
    owned_.push_back(make_gw_kernels(device));
    members_.push_back(owned_.back().get());
  }
  first_of_rank_.push_back(0);
  for (const auto& of_rank : ranks.gather({static_cast<double>(members_.size())}))
    first_of_rank_.push_back(first_of_rank_.back() + static_cast<std::int64_t>(of_rank.at(0)));
}

int DeviceTeam::owner(std::int64_t task, std::int64_t count) const {
  const std::int64_t n = std::min<std::int64_t>(size(), count);
  std::int64_t device = 0;
  while ((device + 1) * count / n <= task) ++device;
  return static_cast<int>(std::upper_bound(first_of_rank_.begin(), first_of_rank_.end(), device) -
                          first_of_rank_.begin()) -
         1;
}

void DeviceTeam::warm_up_others() {
  for (std::size_t member = 1; member < members_.size(); ++member) {
    if (members_[member]->device().backend == Backend::kCpu) continue;
    // What fails here fails again, and is reported, where the device is used.
    warming_.emplace_back([kernels = members_[member]] {
      try {
        warm_up(*kernels);
      } catch (const std::exception&) {
      }
    });
  }
}

namespace {

/// What is left to do of each device's tasks.
class TasksLeft {
 public:
  TasksLeft(std::vector<std::pair<std::int64_t, std::int64_t>> ranges, bool balanced)
      : ranges_(std::move(ranges)), balanced_(balanced) {}
  std::optional<std::int64_t> next(std::size_t member) {
    const std::lock_guard lock(mutex_);
    if (ranges_[member].first < ranges_[member].second) return ranges_[member].first++;
    if (!balanced_) return std::nullopt;
    const auto most = std::max_element(
        ranges_.begin(), ranges_.end(),
        [](const auto& a, const auto& b) { return a.second - a.first < b.second - b.first; });
    if (most->first == most->second) return std::nullopt;
    return --most->second;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  ///< [member] first, end
  bool balanced_;
};

}  // namespace

void DeviceTeam::run(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body,
                     Order order) {
  run_share(first_of_rank_[static_cast<std::size_t>(ranks_->rank())],
            std::min<std::int64_t>(size(), count), count, body, order);
}

void DeviceTeam::run_here(std::int64_t count,
                          const std::function<void(std::int64_t, GwKernels&)>& body, Order order) {
  run_share(0, std::min(static_cast<std::int64_t>(members_.size()), count), count, body, order);
}

void DeviceTeam::run_share(std::int64_t first_device, std::int64_t all, std::int64_t count,
                           const std::function<void(std::int64_t, GwKernels&)>& body, Order order) {
  const std::int64_t n =
      std::clamp<std::int64_t>(all - first_device, 0, static_cast<std::int64_t>(members_.size()));
  const auto begin = [&](std::int64_t member) { return (first_device + member) * count / all; };
  warming_.clear();
  if (n <= 1) {
    for (std::int64_t task = begin(0); n == 1 && task < begin(1); ++task) body(task, first());
    return;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::int64_t member = 0; member < n; ++member)
    ranges.emplace_back(begin(member), begin(member + 1));
  TasksLeft left(std::move(ranges), order == Order::kBalanced);
  std::vector<std::exception_ptr> failure(static_cast<std::size_t>(n));
  std::atomic<bool> failed{false};
  const int threads_each = std::max(1, omp_get_max_threads() / static_cast<int>(n));
  std::vector<std::thread> threads;
  for (std::int64_t member = 0; member < n; ++member)
    threads.emplace_back([&, member] {
      omp_set_num_threads(threads_each);
      GwKernels& kernels = *members_[static_cast<std::size_t>(member)];
      use_device(kernels.device());
      try {
        while (!failed) {
          const auto task = left.next(static_cast<std::size_t>(member));
          if (!task) break;
          body(*task, kernels);
        }
      } catch (...) {
        failure[static_cast<std::size_t>(member)] = std::current_exception();
        failed = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : failure)
    if (error) std::rethrow_exception(error);
}

}  // namespace quasi::gw
