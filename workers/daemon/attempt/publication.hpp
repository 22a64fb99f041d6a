#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "quasi/v1/worker_service.pb.h"
#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/devices/devices.hpp"

namespace quasi {

/// Facts of the run that the manifest contains beside the files.
struct ManifestFacts {
  std::string engine_version;
  std::vector<WorkerDevice> devices;
  double wall_seconds = 0.0;
  std::int64_t peak_ram_bytes = 0;
  std::int64_t peak_gpu_bytes = 0;  ///< on one GPU; 0: not measured
};

/// Results of a finished attempt, ready to be uploaded.
struct Publication {
  v1::CompleteAttemptRequest request;  ///< artefacts with digests, as recorded in the store
  std::optional<Ending> trouble;       ///< set if nothing can be published; gives the reason
};

/// Adds manifest.json to the output directory, hashes and syncs every file there and records the
/// outcome, so that it survives a crash. If a success is already recorded for the attempt, the
/// function returns that record. It blocks while files are hashed. It does not throw.
Publication prepare_publication(FileSystem& files, AttemptStore& store, const v1::Grant& grant,
                                const ManifestFacts& facts);

/// Returns the media type for the extension of the name.
std::string media_type(const std::string& name);

}  // namespace quasi
