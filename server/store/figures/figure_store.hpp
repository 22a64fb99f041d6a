#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/rows.hpp"
#include "server/store/sqlite.hpp"

/// Begin here: server/store/figures reads what metrics and the status page show.
namespace quasi::server {

/// Unfinished jobs of one state in one pool.
struct UnfinishedJobs {
  JobState state = JobState::kQueued;
  std::string pool;
  std::int64_t jobs = 0;
  std::int64_t oldest_created_ms = 0;
};

/// One change of the state of a job, as counters see it.
struct StateChange {
  std::int64_t seq = 0;
  std::optional<JobState> from;  ///< empty at submission
  JobState to = JobState::kQueued;
  FailureReason reason = FailureReason::kNone;
  std::int64_t time_ms = 0;
  std::int32_t attempt = 0;
  bool reinstated = false;
  bool follows_reinstatement = false;  ///< the change before it, at the same time, was one
  std::string kind;
  std::int64_t created_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t cancel_requested_ms = 0;
  AttemptOutcome outcome = AttemptOutcome::kOpen;  ///< of the attempt at present
};

struct StoredFiles {
  std::int64_t files = 0;
  std::int64_t bytes = 0;
};

/// Reads figures over a connection of its own. It needs neither the thread that writes nor those
/// that read for calls, so a scrape delays no call. One thread uses it.
class FigureStore {
 public:
  explicit FigureStore(const std::string& path);

  /// Counts unfinished jobs by state and pool, in one pass over their index.
  std::vector<UnfinishedJobs> unfinished();
  /// Counts the unfinished jobs that a caller of this scope may see, by state and pool.
  std::vector<UnfinishedJobs> unfinished(const Scope& scope);
  /// Changes of the state of a job that the caller may see, the newest first.
  std::vector<EventRow> state_changes_of(RowId job, std::int32_t limit);
  std::int64_t newest_event();
  /// Changes of state after event `seq`, the oldest first.
  std::vector<StateChange> changes_after(std::int64_t seq, std::int32_t limit);
  /// The files that are present. One pass over the table of files.
  StoredFiles stored_files();

 private:
  Database database_;
  StatementCache statements_;
};

}  // namespace quasi::server
