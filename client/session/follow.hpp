#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/session/connection.hpp"
#include "quasi/v1/job_service.pb.h"

namespace quasi::client {

enum class Until { kAll, kAny };

struct FollowOptions {
  std::vector<std::string> job_ids;  ///< full ids, at least one
  Until until = Until::kAll;
  std::optional<double> limit_s;  ///< give up after this time
  /// Time in seconds that the server may be unreachable before `follow` fails.
  double patience_s = 300.0;

  /// The thread of `follow` calls all callbacks.
  std::function<void(const v1::WatchEvent&)> on_event;  ///< after `jobs` includes it
  std::function<void()> on_tick;                        ///< five times a second
  std::function<void(const std::string&)> on_away;      ///< once for each loss of the server
  std::function<void()> on_back;
};

enum class FollowEnd { kDone, kTimedOut, kInterrupted };

/// Follows jobs until all (or any) of them have ended. The stream continues by its resume token
/// whenever it breaks, so a restart of the server loses no event and does not end the call.
///
/// @param jobs  filled with the known state of each job and updated by each event
/// @throws Failure if a job is unknown, the server is unreachable for longer than the patience, or
/// the call is refused.
FollowEnd follow(Connection& server, const FollowOptions& options,
                 std::map<std::string, v1::Job>& jobs);

}  // namespace quasi::client
