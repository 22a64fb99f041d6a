#include "server/web/fleet_board.hpp"

#include <algorithm>
#include <utility>

namespace quasi::server {
namespace {

constexpr double kLongestStepSeconds = 5;
constexpr std::int64_t kSampleMs = 15'000;
constexpr std::int64_t kForgetMs = kSampleMs * static_cast<std::int64_t>(Series::kMost);
constexpr std::size_t kMostDevices = 1'024;

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
  note(now);
}

/// Adds the readings of all devices to their means, and the means to the history in time.
void FleetBoard::note(Now now) {
  for (const WorkerStatus& worker : view_->workers) {
    if (!worker.online) continue;
    for (const DeviceStatus& device : worker.devices) {
      const std::string key = worker.worker.id + "/" + device.device.id;
      if (!readings_.contains(key) && readings_.size() >= kMostDevices) continue;
      Readings& reading = readings_[key];
      const auto whole = static_cast<double>(std::max<std::int64_t>(1, device.device.memory_bytes));
      reading.utilization += device.utilization;
      reading.memory += 1.0 - static_cast<double>(device.free_bytes) / whole;
      ++reading.n;
      reading.seen_ms = now.monotonic_ms;
    }
  }
  if (noted_ms_ != 0 && now.monotonic_ms - noted_ms_ < kSampleMs) return;
  noted_ms_ = now.monotonic_ms;
  for (auto& [key, reading] : readings_) {
    if (reading.n == 0) continue;
    const auto n = static_cast<double>(reading.n);
    reading.history.utilization.add(static_cast<float>(reading.utilization / n));
    reading.history.memory.add(static_cast<float>(reading.memory / n));
    reading.utilization = reading.memory = 0;
    reading.n = 0;
  }
  std::erase_if(readings_, [&](const auto& entry) {
    return now.monotonic_ms - entry.second.seen_ms > kForgetMs;
  });
}

std::map<std::string, DeviceHistory> FleetBoard::history() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, DeviceHistory> history;
  for (const auto& [key, reading] : readings_) history.emplace(key, reading.history);
  return history;
}

void FleetBoard::put_jobs(std::int64_t queued, std::int64_t running, Now now) {
  const std::lock_guard lock(mutex_);
  if (jobs_noted_ms_ != 0 && now.monotonic_ms - jobs_noted_ms_ < kSampleMs) return;
  jobs_noted_ms_ = now.monotonic_ms;
  queued_.add(static_cast<float>(queued));
  running_.add(static_cast<float>(running));
}

void FleetBoard::copy_jobs(Series& queued, Series& running) const {
  const std::lock_guard lock(mutex_);
  queued = queued_;
  running = running_;
}

std::shared_ptr<const FleetBoard::View> FleetBoard::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

}  // namespace quasi::server
