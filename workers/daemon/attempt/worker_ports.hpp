#pragma once

#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/attempt/input_cache.hpp"
#include "workers/daemon/ports/clock.hpp"
#include "workers/daemon/ports/file_system.hpp"
#include "workers/daemon/ports/server_link.hpp"
#include "workers/daemon/ports/spawner.hpp"
#include "workers/daemon/worker_log.hpp"

namespace quasi {

/// Interfaces to everything outside the daemon that an attempt uses. All of them outlive the
/// attempt.
struct WorkerPorts {
  Clock& clock;
  FileSystem& files;
  AttemptStore& store;
  InputCache& inputs;
  Spawner& spawner;
  ServerLink& server;
  BlobTransfer& blobs;
  Background& background;
  WorkerLog& log;
};

}  // namespace quasi
