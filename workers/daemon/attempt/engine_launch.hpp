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

/// Settings that are equal for all engines of this daemon.
struct EngineSettings {
  AttemptTimes times;
  int threads = 0;  ///< threads per slot, the most that a job gets; 0: the engine decides
  std::uint64_t max_ram_bytes = 0;       ///< most memory of an attempt; 0: what its job asks for
  std::vector<std::string> environment;  ///< variables of the daemon's environment that engines get
  bool require_cage = false;             ///< An engine that is not caged is ended at once.
};

/// Builds the first message to an engine. It holds kind, deck, settings and the devices as the
/// engine sees them.
v1::EngineStart start_message(const v1::Grant& grant, const std::vector<WorkerDevice>& devices);

/// Builds the plan of the engine process: directory, environment and network.
LaunchPlan launch_plan(const v1::Grant& grant, const std::vector<WorkerDevice>& devices,
                       const EngineSettings& settings, const AttemptPaths& paths);

}  // namespace quasi
