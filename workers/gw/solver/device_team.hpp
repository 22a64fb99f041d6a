#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "workers/backend/ranks/ranks.hpp"
#include "workers/backend/team/task_ranges.hpp"
#include "workers/backend/team/team_layout.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// The devices of one job, including those of its other ranks. The cut into tasks does not depend
/// on the number of devices. Each task leaves its own result, and the caller adds the results in
/// the order of the tasks. One device and many therefore give the same bits.
class DeviceTeam {
 public:
  /// Makes kernels for every device. Collective.
  explicit DeviceTeam(const std::vector<Device>& devices, Ranks& ranks = one_rank());
  /// A team of one device in this process. The caller keeps the kernels alive.
  explicit DeviceTeam(GwKernels& kernels) : members_{&kernels}, layout_(1, one_rank()) {}

  Ranks& ranks() const { return layout_.ranks(); }
  /// Returns the first device of this rank.
  GwKernels& first() { return *members_.front(); }
  /// Returns all devices of this rank.
  const std::vector<GwKernels*>& members() const { return members_; }
  /// Returns the number of devices of all ranks.
  int size() const { return static_cast<int>(layout_.size()); }
  /// Returns the rank to which run(count, …) gives a task.
  int owner(std::int64_t task, std::int64_t count) const { return layout_.owner(task, count); }
  bool owns(std::int64_t task, std::int64_t count) const { return layout_.owns(task, count); }
  /// Lets all devices except the first load their code while the first one works; run() waits for
  /// it.
  void warm_up_others();
  using Order = TaskRanges::Order;
  /// Calls body(task, kernels) for every task in [0, count) of this rank, with one thread for each
  /// device. @throws the exception of the lowest failed device, after all threads have ended
  void run(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body,
           Order order = Order::kNeighbours);
  /// Runs tasks on the devices of this rank alone.
  void run_here(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body,
                Order order = Order::kNeighbours);

 private:
  /// @param first_device  first device of this rank among the `all` devices that share the tasks
  void run_share(std::int64_t first_device, std::int64_t all, std::int64_t count,
                 const std::function<void(std::int64_t, GwKernels&)>& body, Order order);
  std::vector<std::unique_ptr<GwKernels>> owned_;
  std::vector<GwKernels*> members_;
  TeamLayout layout_;
  std::vector<std::jthread> warming_;
};

}  // namespace quasi::gw
