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

/// Devices as the configuration names them. @throws DevicesLost, ConfigError.
std::unique_ptr<DeviceSource> make_devices(const WorkerConfig& config);

/// Serves until it is told to stop: SIGTERM and SIGINT drain, a second one stops at once.
DaemonExit serve(const WorkerConfig& config);

}  // namespace quasi
