#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/worker_log.hpp"

namespace quasi {

/// Records the free slots and the devices that may be used.
///
/// A device is quarantined in these cases:
/// - It reports a fault. The quarantine ends when it reports none.
/// - A child outlived SIGKILL. The quarantine ends when the child is gone.
/// - It caused three GPU_FAULTs in a row, or its self-test failed. The quarantine ends when a
///   self-test passes.
class DeviceBoard {
 public:
  /// Memory that must stay free in addition to the memory that a job asked for.
  static constexpr std::int64_t kMarginBytes = std::int64_t{512} << 20;
  static constexpr int kFaultsToQuarantine = 3;

  DeviceBoard(DeviceSource& source, WorkerLog& log);

  /// Reads the health of every device. @throws DevicesLost if none answers.
  void refresh();

  /// Returns the free slots of all devices that may be used.
  std::vector<v1::FreeSlot> free_slots() const;
  /// Returns all devices with their states, as the server is told.
  std::vector<v1::Device> describe() const;

  /// Takes one slot on each device. Returns nothing if a device is unknown or has no free slot.
  std::vector<WorkerDevice> take(const std::vector<std::string>& ids);
  /// Returns the slots that take() has taken.
  void give_back(const std::vector<WorkerDevice>& devices);

  /// Returns the reason why the devices cannot hold this much memory, or "". Reads the devices'
  /// health.
  std::string shortage(const std::vector<WorkerDevice>& devices, std::int64_t bytes);

  /// Quarantines devices whose child outlived SIGKILL.
  void stuck(const std::vector<WorkerDevice>& devices, const std::string& reason);
  /// Ends the quarantine when that child is gone.
  void unstuck(const std::vector<WorkerDevice>& devices);
  /// Counts GPU_FAULTs in a row. A success resets the count.
  void record(const std::vector<WorkerDevice>& devices, const Ending& ending);
  /// Returns the idle GPUs whose self-test is due: sound ones after `interval`, quarantined ones
  /// after `retest`. They take no attempt until tested() gets the result.
  std::vector<WorkerDevice> begin_tests(MonotonicTime now, Milliseconds interval,
                                        Milliseconds retest);
  /// Takes the result of a self-test. A passed one, "", ends a quarantine for faults.
  void tested(const WorkerDevice& device, const std::string& trouble);
  DeviceSource& source() { return source_; }
  /// Returns the memory that a process group was measured to hold on the device where it holds
  /// most; 0 if that is unknown.
  std::int64_t held_by(const std::vector<WorkerDevice>& devices, std::int64_t process_group) const;
  /// Offers no slot of any device while `why` is not empty, e.g. because the worker's disk is full.
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
    std::string failed_test;  ///< what its self-test found
    bool testing = false;
    std::optional<MonotonicTime> tested_at;  ///< begin of its last self-test
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
