#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quasi {

/// Begin here: a device that can run attempts, as the daemon knows it. The daemon never makes a
/// CUDA context. DeviceSource lists devices, and device_board.hpp assigns their slots.
struct WorkerDevice {
  std::string uuid;               ///< "GPU-…", "MIG-…", or "cpu"
  std::string model;              ///< "NVIDIA H200"; the processor's name for the CPU
  std::int64_t memory_bytes = 0;  ///< total memory
  bool cuda = false;              ///< true: the engine gets cuda:N; false: cpu
  bool mig = false;               ///< true for an instance of a partitioned GPU
  int slots = 1;                  ///< most attempts at a time
};

/// Health that a device reports.
struct DeviceHealth {
  std::int64_t free_bytes = 0;
  std::vector<std::int64_t> processes;                 ///< process ids with a context on the device
  std::map<std::int64_t, std::int64_t> process_bytes;  ///< memory that each of them holds
  std::optional<std::int64_t> attempt_bytes;  ///< fake devices: memory that each attempt holds
  std::optional<std::string> fault;   ///< reason against using it: fatal Xid, uncorrected ECC…
  std::optional<double> utilization;  ///< 0 … 1
  std::optional<double> temperature_c;
  std::optional<double> power_watts;
};

/// Source of devices: NVML, a file for tests, or the CPU's cores.
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  /// Returns the devices in a fixed order.
  virtual std::vector<WorkerDevice> devices() = 0;
  /// Returns the health of a device. @throws DevicesLost if the whole source is lost; the daemon
  /// then exits with status 75.
  virtual DeviceHealth health(const WorkerDevice& device) = 0;
  /// Tests the device. It blocks and may run on any thread. @return what is wrong, or ""
  virtual std::string self_test(const WorkerDevice&) { return {}; }
};

/// Offers the host's processors as one device of `n_slots` slots.
std::unique_ptr<DeviceSource> make_cpu_slots(int n_slots);

/// Reads devices from a TOML file. The file is read again at every query so that a test can inject
/// faults:
///
///   [[device]]
///   uuid = "GPU-0"   model = "Fake 80"   memory_gib = 80   free_gib = 79
///   processes = [4242]   fault = "Xid 79"   lost = false   cuda = false
///   slots = 2   attempt_gib = 20   self_test = "wrong sum"
///
/// A device whose uuid begins with "MIG-" is an instance of a partitioned GPU.
/// @throws ConfigError naming file, line and key.
std::unique_ptr<DeviceSource> make_fake_devices(const std::filesystem::path& file);

/// Lists NVIDIA GPUs and MIG instances through libnvidia-ml.so.1, which is opened at run time.
/// Each takes `n_slots` attempts at a time. `test` runs a program that tests the device of a uuid
/// and returns what is wrong, or "".
/// @throws DevicesLost saying which step failed ("no driver: …").
std::unique_ptr<DeviceSource> make_nvml_devices(
    int n_slots, std::function<std::string(const std::string& uuid)> test);

}  // namespace quasi
