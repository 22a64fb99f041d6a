#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quasi {

/// One thing that can carry attempts, as the daemon knows it: no CUDA context is ever made here.
struct WorkerDevice {
  std::string uuid;               ///< "GPU-…", "MIG-…", or "cpu"
  std::string model;              ///< "NVIDIA H200"; the processor's name for the CPU
  std::int64_t memory_bytes = 0;  ///< total
  bool cuda = false;              ///< the engine is given cuda:N, else cpu
  bool mig = false;               ///< an instance of a partitioned GPU
  int slots = 1;                  ///< attempts that it carries at most
};

/// What a device says of itself now.
struct DeviceHealth {
  std::int64_t free_bytes = 0;
  std::vector<std::int64_t> processes;  ///< pids with a context on the device
  std::optional<std::string> fault;     ///< why it must not be used: fatal Xid, uncorrected ECC…
  std::optional<double> utilization;    ///< 0 … 1
  std::optional<double> temperature_c;
  std::optional<double> power_watts;
};

/// Where devices come from: NVML, a file (tests), or the CPU's cores.
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  /// In a fixed order.
  virtual std::vector<WorkerDevice> devices() = 0;
  /// @throws DevicesLost if the source is lost altogether (the daemon then exits 75).
  virtual DeviceHealth health(const WorkerDevice& device) = 0;
};

/// The host's processors as one device of `n_slots` slots.
std::unique_ptr<DeviceSource> make_cpu_slots(int n_slots);

/// Devices from a TOML file, read anew at every question so that a test can inject faults:
///
///   [[device]]
///   uuid = "GPU-0"   model = "Fake 80"   memory_gib = 80   free_gib = 79
///   processes = [4242]   fault = "Xid 79"   lost = false   cuda = false
///
/// @throws ConfigError naming file, line and key.
std::unique_ptr<DeviceSource> make_fake_devices(const std::filesystem::path& file);

/// NVIDIA GPUs and MIG instances through libnvidia-ml.so.1, opened at run time.
/// @throws DevicesLost saying which step failed ("no driver: …").
std::unique_ptr<DeviceSource> make_nvml_devices();

}  // namespace quasi
