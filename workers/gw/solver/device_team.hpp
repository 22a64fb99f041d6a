#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "workers/backend/ranks/ranks.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// The devices of one job, those of its other ranks among them. Work is cut into tasks without
/// regard to how many devices there are; each task leaves its own result, and whoever asked adds
/// the results in the order of the tasks. One device and many therefore give the same bits.
class DeviceTeam {
 public:
  /// Together.
  explicit DeviceTeam(const std::vector<Device>& devices, Ranks& ranks = one_rank());
  /// A team of one that someone else owns.
  explicit DeviceTeam(GwKernels& kernels) : members_{&kernels}, first_of_rank_{0, 1} {}

  Ranks& ranks() const { return *ranks_; }
  /// Of this rank:
  GwKernels& first() { return *members_.front(); }
  const std::vector<GwKernels*>& members() const { return members_; }
  /// Of all ranks.
  int size() const { return static_cast<int>(first_of_rank_.back()); }
  /// Which rank run(count, …) gives a task to. Tasks of one rank are neighbours, and ranks follow
  /// each other.
  int owner(std::int64_t task, std::int64_t count) const;
  bool owns(std::int64_t task, std::int64_t count) const {
    return owner(task, count) == ranks_->rank();
  }
  /// Lets all devices but the first load their code beside what the first one does now; run() waits
  /// for it.
  void warm_up_others();
  /// kNeighbours: neighbours on one device, in order. kBalanced: the same as long as all devices
  /// are busy; one that has nothing left takes the last task of the one that has most left.
  enum class Order { kNeighbours, kBalanced };
  /// body(task, kernels) for every task in [0, count) of this rank, one thread a device.
  /// The first exception of the lowest device is thrown here, after all threads have ended.
  void run(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body,
           Order order = Order::kNeighbours);
  /// The same on the devices of this rank alone, whatever others do.
  void run_here(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body,
                Order order = Order::kNeighbours);

 private:
  /// @param first_device  of this rank, among `all` that share the tasks
  void run_share(std::int64_t first_device, std::int64_t all, std::int64_t count,
                 const std::function<void(std::int64_t, GwKernels&)>& body, Order order);
  std::vector<std::unique_ptr<GwKernels>> owned_;
  std::vector<GwKernels*> members_;
  std::vector<std::int64_t> first_of_rank_;  ///< [ranks + 1] first device of each among all
  Ranks* ranks_ = &one_rank();
  std::vector<std::jthread> warming_;
};

}  // namespace quasi::gw
