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
  /// How long the server may be away before that is a failure.
  double patience_s = 300.0;

  /// All called on the thread of `follow`.
  std::function<void(const v1::WatchEvent&)> on_event;  ///< after `jobs` took it in
  std::function<void()> on_tick;                        ///< five times a second
  std::function<void(const std::string&)> on_away;      ///< once for each loss of the server
  std::function<void()> on_back;
};

enum class FollowEnd { kDone, kTimedOut, kInterrupted };

/// Follows jobs until all (or any) of them have ended. The stream is taken up again by its resume
/// token whenever it breaks, so a restart of the server loses no event and ends nothing.
///
/// @param jobs  filled with what is known of each job, kept up to date as events come
/// @throws Failure: unknown job, server away for longer than the patience, call refused.
FollowEnd follow(Connection& server, const FollowOptions& options,
                 std::map<std::string, v1::Job>& jobs);

}  // namespace quasi::client
