#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/store/sqlite.hpp"

namespace quasi::server {

/// States how many bytes files of ended jobs may hold: results, checkpoints, inputs and logs. A
/// file of several jobs counts once. 0 means no limit.
struct ResultLimits {
  std::int64_t user_bytes = 0;       ///< of the jobs of one owner
  std::int64_t total_bytes = 0;      ///< of all jobs
  std::int64_t ended_before_ms = 0;  ///< jobs that ended later count and stay
  std::size_t most = 1'000;          ///< length of the answer
};

/// Names a job that has to go so that a limit is kept.
struct ExcessResult {
  std::string uid;
  bool of_user = false;  ///< its owner is above the limit; otherwise all users together
};

/// Finds the ended jobs that have to be deleted, the oldest first. The newest jobs whose files fit
/// into the limits stay, and so do jobs without files of their own. It reads in short transactions,
/// so that a long table delays no checkpoint of the log. @throws SqliteError
std::vector<ExcessResult> excess_results(Database& database, const ResultLimits& limits);

}  // namespace quasi::server
