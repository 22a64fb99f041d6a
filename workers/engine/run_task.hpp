#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "workers/engine/task.hpp"

namespace quasi {

/// How a run ended, as the exit status of quasi-engine: the contract between engine and daemon.
enum class ExitStatus : int {
  kOk = 0,
  kUnexpected = 1,
  kUsage = 2,
  kInvalidInput = 10,
  kNumerical = 11,
  kOutOfMemory = 12,
  kDeviceFault = 13,
  kCancelled = 14,
  kStorage = 15,
  kBackendAbsent = 16,
};

/// Runs `body` and turns what it throws into a status and one clear sentence. The only place where
/// exceptions of the numerics end.
ExitStatus guarded(const std::function<void()>& body, std::string* message);

/// @throws InvalidInput for a format that the kind does not write, with the nearest that it does.
void require_exports(const std::string& kind, const std::vector<std::string>& formats);

/// Runs one task and writes (rank 0 alone), beside result.h5, summary.json (the document below) and
/// table.txt (the table for people, so that a client shows it without knowing the kind).
/// @return the document of --json: {"schema","kind","version","device","seconds"…, "summary"{…}}.
nlohmann::json run_task(const std::string& kind, const RunOptions& options, Progress& progress);

}  // namespace quasi
