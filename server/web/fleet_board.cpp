#include "server/web/fleet_board.hpp"

#include <algorithm>
#include <utility>

namespace quasi::server {
namespace {

constexpr double kLongestStepSeconds = 5;

}  // namespace

void FleetBoard::put(std::vector<WorkerStatus> workers, Now now) {
  const auto before = view();
  auto next = std::make_shared<View>();
  // A server that was stopped for a while knows nothing of the power in between.
  const double seconds = put_ms_ == 0
                             ? 0.0
                             : std::clamp(static_cast<double>(now.monotonic_ms - put_ms_) / 1'000.0,
                                          0.0, kLongestStepSeconds);
  put_ms_ = now.monotonic_ms;
  for (const WorkerStatus& worker : workers) {
    if (!worker.online) continue;
    for (const DeviceStatus& device : worker.devices) {
      const std::string key = worker.worker.id + "/" + device.device.id;
      const auto known = before->energy_joules.find(key);
      next->energy_joules[key] = (known == before->energy_joules.end() ? 0.0 : known->second) +
                                 std::max(device.power_watts, 0.0) * seconds;
    }
  }
  next->workers = std::move(workers);
  const std::lock_guard lock(mutex_);
  view_ = std::move(next);
}

std::shared_ptr<const FleetBoard::View> FleetBoard::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

}  // namespace quasi::server
