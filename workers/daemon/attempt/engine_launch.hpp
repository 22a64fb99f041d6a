#pragma once

#include <string>
#include <vector>

#include "quasi/v1/engine.pb.h"
#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/ports/spawner.hpp"

namespace quasi {

/// What every engine of this daemon is given.
struct EngineSettings {
  AttemptTimes times;
  int threads = 0;  ///< share of one slot, the most that a job gets; 0: the engine's choice
  std::vector<std::string> environment;  ///< allowed through from the daemon's own
};

/// The first message to the engine of an attempt: kind, deck, settings, devices as it will see
/// them.
v1::EngineStart start_message(const v1::Grant& grant, const std::vector<WorkerDevice>& devices);

/// The process around it: directory, environment, network.
LaunchPlan launch_plan(const v1::Grant& grant, const std::vector<WorkerDevice>& devices,
                       const EngineSettings& settings, const AttemptPaths& paths);

}  // namespace quasi
