#include "workers/gw/solver/device_team.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "workers/backend/team/every_device.hpp"

namespace quasi::gw {

DeviceTeam::DeviceTeam(const std::vector<Device>& devices, Ranks& ranks)
    : layout_(devices.size(), ranks) {
  for (const Device& device : devices) {
    owned_.push_back(make_gw_kernels(device));
    members_.push_back(owned_.back().get());
  }
}

void DeviceTeam::warm_up_others() {
  for (std::size_t member = 1; member < members_.size(); ++member) {
    if (members_[member]->device().backend == Backend::kCpu) continue;
    // A failure here occurs again at the first use of the device, where it is reported.
    warming_.emplace_back([kernels = members_[member]] {
      try {
        warm_up(*kernels);
      } catch (const std::exception&) {
      }
    });
  }
}

void DeviceTeam::run(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body,
                     Order order) {
  run_share(layout_.first_own(), std::min<std::int64_t>(size(), count), count, body, order);
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
  std::vector<TaskRanges::Range> ranges;
  for (std::int64_t member = 0; member < n; ++member)
    ranges.emplace_back(begin(member), begin(member + 1));
  TaskRanges left(std::move(ranges), order);
  std::atomic<bool> stop{false};
  const HostThreadShare threads(static_cast<std::size_t>(n));
  on_every_device(static_cast<std::size_t>(n), stop, [&](std::size_t member) {
    GwKernels& kernels = *members_[member];
    use_device(kernels.device());
    while (!stop) {
      const auto task = left.next(member);
      if (!task) break;
      body(*task, kernels);
    }
  });
}

}  // namespace quasi::gw
