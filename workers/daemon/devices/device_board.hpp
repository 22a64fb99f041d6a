#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/worker_log.hpp"

namespace quasi {

/// Which slots are free, and which devices may be used at all.
///
/// A device is quarantined for a fault that it reports (until it reports none), for a child that
/// outlived SIGKILL (until that child is gone), and after three GPU_FAULTs in a row (until the
/// daemon is restarted).
class DeviceBoard {
 public:
  /// Memory that must stay free beside what a job asked for.
  static constexpr std::int64_t kMarginBytes = std::int64_t{512} << 20;
  static constexpr int kFaultsToQuarantine = 3;

  DeviceBoard(DeviceSource& source, WorkerLog& log);

  /// Asks every device how it is. @throws DevicesLost if none answers.
  void refresh();

  std::vector<v1::FreeSlot> free_slots() const;
  std::vector<v1::Device> describe() const;

  /// Takes one slot on each. Empty if some device is unknown or has no slot left.
  std::vector<WorkerDevice> take(const std::vector<std::string>& ids);
  void give_back(const std::vector<WorkerDevice>& devices);

  /// Why the devices cannot hold this much now, or "". Asks the devices.
  std::string shortage(const std::vector<WorkerDevice>& devices, std::int64_t bytes);

  void stuck(const std::vector<WorkerDevice>& devices, const std::string& reason);
  void unstuck(const std::vector<WorkerDevice>& devices);
  void record(const std::vector<WorkerDevice>& devices, const Ending& ending);
  /// No device offers a slot while `why` is not empty, e.g. because the worker's disk is full.
  void hold(const std::string& why);

 private:
  struct Entry {
    WorkerDevice device;
    DeviceHealth health;
    int busy = 0;
    int faults_in_a_row = 0;
    bool lost = false;
    bool short_of_memory = false;
    std::string stuck;
    v1::DeviceState shown = v1::DEVICE_STATE_READY;
  };
  std::pair<v1::DeviceState, std::string> judge(const Entry& entry) const;
  void tell_changes();
  Entry* find(const std::string& id);

  std::string held_;
  DeviceSource& source_;
  WorkerLog& log_;
  std::vector<Entry> entries_;
};

}  // namespace quasi
