#include "workers/daemon/devices/device_board.hpp"

#include <unistd.h>

#include <algorithm>

#include "workers/daemon/error.hpp"

namespace quasi {

DeviceBoard::DeviceBoard(DeviceSource& source, WorkerLog& log) : source_(source), log_(log) {
  for (auto& device : source_.devices()) entries_.push_back({.device = std::move(device)});
  refresh();
}

void DeviceBoard::refresh() {
  std::string last_loss;
  std::size_t n_lost = 0;
  for (Entry& entry : entries_) {
    try {
      entry.health = source_.health(entry.device);
      entry.lost = false;
      if (entry.busy == 0) entry.short_of_memory = false;
    } catch (const DevicesLost& loss) {
      entry.lost = true;
      last_loss = loss.what();
      ++n_lost;
    }
  }
  tell_changes();
  if (n_lost == entries_.size())
    throw DevicesLost("no device answers; check the driver: " + last_loss);
}

std::pair<v1::DeviceState, std::string> DeviceBoard::judge(const Entry& entry) const {
  if (entry.lost) return {v1::DEVICE_STATE_LOST, "the driver has lost the device"};
  if (entry.health.fault) return {v1::DEVICE_STATE_QUARANTINED, *entry.health.fault};
  if (!entry.stuck.empty()) return {v1::DEVICE_STATE_QUARANTINED, entry.stuck};
  if (entry.faults_in_a_row >= kFaultsToQuarantine)
    return {v1::DEVICE_STATE_QUARANTINED, std::to_string(entry.faults_in_a_row) +
                                              " device faults in a row; a passed self-test " +
                                              "ends this"};
  if (!entry.failed_test.empty())
    return {v1::DEVICE_STATE_QUARANTINED, "its self-test failed: " + entry.failed_test};
  if (!held_.empty()) return {v1::DEVICE_STATE_BUSY_FOREIGN, held_};
  if (entry.short_of_memory)
    return {v1::DEVICE_STATE_BUSY_FOREIGN, std::to_string(entry.health.processes.size()) +
                                               " process(es) of other programs use its memory"};
  return {v1::DEVICE_STATE_READY, ""};
}

void DeviceBoard::tell_changes() {
  for (Entry& entry : entries_) {
    const auto [state, reason] = judge(entry);
    if (state == entry.shown) continue;
    entry.shown = state;
    log_.warning(
        "device_state",
        {{"device", entry.device.uuid}, {"state", v1::DeviceState_Name(state)}, {"why", reason}});
  }
}

std::vector<v1::FreeSlot> DeviceBoard::free_slots() const {
  std::vector<v1::FreeSlot> slots;
  for (const Entry& entry : entries_) {
    if (entry.testing || judge(entry).first != v1::DEVICE_STATE_READY) continue;
    for (int slot = entry.busy; slot < entry.device.slots; ++slot) {
      v1::FreeSlot free;
      free.set_device_id(entry.device.uuid);
      // The value is at least one, because zero means "as registered".
      free.set_free_bytes(static_cast<std::uint64_t>(
          std::max<std::int64_t>(1, entry.health.free_bytes - kMarginBytes)));
      slots.push_back(std::move(free));
    }
  }
  return slots;
}

std::vector<v1::Device> DeviceBoard::describe() const {
  std::vector<v1::Device> devices;
  for (const Entry& entry : entries_) {
    v1::Device device;
    device.set_id(entry.device.uuid);
    device.set_backend(entry.device.cuda ? v1::DEVICE_BACKEND_CUDA : v1::DEVICE_BACKEND_CPU);
    device.set_model(entry.device.model);
    device.set_memory_bytes(static_cast<std::uint64_t>(entry.device.memory_bytes));
    device.set_free_bytes(static_cast<std::uint64_t>(entry.health.free_bytes));
    device.set_slots(static_cast<std::uint32_t>(entry.device.slots));
    const auto [state, reason] = judge(entry);
    device.set_state(state);
    device.set_state_reason(reason);
    if (entry.health.utilization || entry.health.temperature_c || entry.health.power_watts) {
      auto* telemetry = device.mutable_telemetry();
      telemetry->set_utilization(entry.health.utilization.value_or(0.0));
      telemetry->set_temperature_c(entry.health.temperature_c.value_or(0.0));
      telemetry->set_power_watts(entry.health.power_watts.value_or(0.0));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

DeviceBoard::Entry* DeviceBoard::find(const std::string& id) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.device.uuid == id; });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<WorkerDevice> DeviceBoard::take(const std::vector<std::string>& ids) {
  std::vector<WorkerDevice> taken;
  for (const auto& id : ids) {
    Entry* entry = find(id);
    if (entry == nullptr || entry->busy >= entry->device.slots) {
      give_back(taken);
      return {};
    }
    ++entry->busy;
    taken.push_back(entry->device);
  }
  return taken;
}

void DeviceBoard::give_back(const std::vector<WorkerDevice>& devices) {
  for (const auto& device : devices)
    if (Entry* entry = find(device.uuid)) --entry->busy;
}

std::string DeviceBoard::shortage(const std::vector<WorkerDevice>& devices, std::int64_t bytes) {
  std::string why;
  for (const auto& device : devices) {
    Entry* entry = find(device.uuid);
    if (entry == nullptr || !entry->device.cuda) continue;
    try {
      entry->health = source_.health(entry->device);
    } catch (const DevicesLost& loss) {
      entry->lost = true;
      why = loss.what();
      continue;
    }
    if (bytes == 0 || entry->health.free_bytes >= bytes + kMarginBytes) continue;
    entry->short_of_memory = true;
    why = "device " + device.uuid + " has " + std::to_string(entry->health.free_bytes >> 20) +
          " MiB free; the job asked for " + std::to_string(bytes >> 20) + " MiB and " +
          std::to_string(kMarginBytes >> 20) + " MiB are kept free";
  }
  tell_changes();
  return why;
}

void DeviceBoard::stuck(const std::vector<WorkerDevice>& devices, const std::string& reason) {
  for (const auto& device : devices)
    if (Entry* entry = find(device.uuid)) entry->stuck = reason;
  tell_changes();
}

void DeviceBoard::unstuck(const std::vector<WorkerDevice>& devices) {
  for (const auto& device : devices)
    if (Entry* entry = find(device.uuid)) entry->stuck.clear();
  tell_changes();
}

std::vector<WorkerDevice> DeviceBoard::begin_tests(MonotonicTime now, Milliseconds interval,
                                                   Milliseconds retest) {
  std::vector<WorkerDevice> due;
  for (Entry& entry : entries_) {
    if (!entry.device.cuda || entry.testing || entry.busy > 0 || entry.lost) continue;
    if (entry.health.fault || !entry.stuck.empty()) continue;  // these end by themselves
    const bool is_sound = entry.faults_in_a_row < kFaultsToQuarantine && entry.failed_test.empty();
    if (entry.tested_at && now < *entry.tested_at + (is_sound ? interval : retest)) continue;
    entry.testing = true;
    entry.tested_at = now;
    due.push_back(entry.device);
  }
  return due;
}

void DeviceBoard::tested(const WorkerDevice& device, const std::string& trouble) {
  Entry* entry = find(device.uuid);
  if (entry == nullptr) return;
  entry->testing = false;
  entry->failed_test = trouble;
  if (trouble.empty()) entry->faults_in_a_row = 0;
  tell_changes();
}

std::int64_t DeviceBoard::held_by(const std::vector<WorkerDevice>& devices,
                                  std::int64_t process_group) const {
  std::int64_t most = 0;
  for (const Entry& entry : entries_) {
    const bool is_used =
        std::any_of(devices.begin(), devices.end(),
                    [&](const WorkerDevice& device) { return device.uuid == entry.device.uuid; });
    if (!is_used) continue;
    std::int64_t bytes = entry.health.attempt_bytes.value_or(0);
    for (const auto& [pid, held] : entry.health.process_bytes)
      if (getpgid(static_cast<pid_t>(pid)) == process_group) bytes += held;
    most = std::max(most, bytes);
  }
  return most;
}

void DeviceBoard::hold(const std::string& why) {
  held_ = why;
  tell_changes();
}

void DeviceBoard::record(const std::vector<WorkerDevice>& devices, const Ending& ending) {
  for (const auto& device : devices) {
    Entry* entry = find(device.uuid);
    if (entry == nullptr) continue;
    if (ending.kind == Ending::Kind::kFailed && ending.reason == v1::FAILURE_REASON_GPU_FAULT)
      ++entry->faults_in_a_row;
    else if (ending.kind == Ending::Kind::kSucceeded)
      entry->faults_in_a_row = 0;
  }
  tell_changes();
}

}  // namespace quasi
