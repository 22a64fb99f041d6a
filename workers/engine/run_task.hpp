#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "workers/engine/task.hpp"

namespace quasi {

/// Ending of a run as the exit status of quasi-engine. It is the contract between engine and
/// daemon.
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

/// Runs `body` and converts its exception into a status and one sentence. Exceptions of the
/// numerics end here and at no other place.
ExitStatus guarded(const std::function<void()>& body, std::string* message);

/// @throws InvalidInput for a format that the kind does not write, naming the nearest format that
/// it writes.
void require_exports(const std::string& kind, const std::vector<std::string>& formats);

/// Runs one task. Rank 0 writes two files beside result.h5: summary.json, which is the document
/// below, and table.txt, a table for people. A client can thus show the table without knowing the
/// kind. @return the document of --json: {"schema","kind","version","device","seconds"…,
/// "summary"{…}}.
nlohmann::json run_task(const std::string& kind, const RunOptions& options, Progress& progress);

}  // namespace quasi
