#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// The devices of one job. Work is cut into tasks without regard to how many devices there are; each task
/// leaves its own result, and whoever asked adds the results in the order of the tasks. One device and many
/// therefore give the same bits.
class DeviceTeam {
 public:
  explicit DeviceTeam(const std::vector<Device>& devices);
  /// A team of one that someone else owns.
  explicit DeviceTeam(GwKernels& kernels) : members_{&kernels} {}

  GwKernels& first() { return *members_.front(); }
  const std::vector<GwKernels*>& members() const { return members_; }
  int size() const { return static_cast<int>(members_.size()); }
  /// body(task, kernels) for every task in [0, count): neighbours on one device, in order, one thread a device.
  /// The first exception of the lowest task is thrown here, after all threads have ended.
  void run(std::int64_t count, const std::function<void(std::int64_t, GwKernels&)>& body);

 private:
  std::vector<std::unique_ptr<GwKernels>> owned_;
  std::vector<GwKernels*> members_;
};

}  // namespace quasi::gw
