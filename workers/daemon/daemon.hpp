#pragma once

#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/worker_config.hpp"

namespace quasi {

/// Exit statuses of quasi-worker.
enum class DaemonExit : int {
  kClean = 0,
  kUnexpected = 1,
  kAlreadyRunning = 73,
  kStorage = 74,
  kDevicesLost = 75,
  kConfig = 78,
};

/// Makes the devices that the configuration names. @throws DevicesLost, ConfigError.
std::unique_ptr<DeviceSource> make_devices(const WorkerConfig& config);

/// Runs the daemon until a signal stops it. The first SIGTERM or SIGINT drains; the second stops at
/// once.
DaemonExit serve(const WorkerConfig& config);

}  // namespace quasi
