#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/devices/devices.hpp"

namespace quasi {

/// What the manifest says beside the files.
struct ManifestFacts {
  std::string engine_version;
  std::vector<WorkerDevice> devices;
  double wall_seconds = 0.0;
  std::int64_t peak_ram_bytes = 0;
};

/// A finished attempt's results, ready to be uploaded.
struct Publication {
  v1::CompleteAttemptRequest request;  ///< artefacts with digests; recorded in the store
  std::optional<Ending> trouble;       ///< set: nothing can be published, and why
};

/// Adds manifest.json to the output directory, hashes and syncs every file there and records the
/// outcome, so that it survives a crash. Called again for an attempt with a recorded success, it
/// returns what was recorded. Blocks: gigabytes may be hashed. Does not throw.
Publication prepare_publication(FileSystem& files, AttemptStore& store, const v1::Grant& grant,
                                const ManifestFacts& facts);

/// By the name's extension.
std::string media_type(const std::string& name);

}  // namespace quasi
