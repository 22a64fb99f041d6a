#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/figures/exposition.hpp"
#include "server/store/figures/figure_store.hpp"

namespace quasi::server {

/// Counters of jobs and attempts since the server started. They follow the event log, which has
/// exactly one event for each change of a state (I8), so they need no hook in the queue and count
/// nothing twice. One thread uses them.
class JobFigures {
 public:
  /// Begins after the newest event.
  explicit JobFigures(FigureStore& store) : store_(store), seen_(store.newest_event()) {}

  /// Reads the events that came since the last call.
  void follow();
  void write(Exposition& out) const;

 private:
  struct ByKind {
    std::int64_t submitted = 0;
    Histogram wait_seconds{kJobSeconds};
    Histogram run_seconds{kJobSeconds};
    /// Number of ended jobs, by state and reason.
    std::map<std::pair<JobState, FailureReason>, std::int64_t> finished;
  };
  void count(const StateChange& change);

  FigureStore& store_;
  std::int64_t seen_;
  std::map<std::string, ByKind> kinds_;
  std::map<AttemptOutcome, std::int64_t> attempts_;
  std::int64_t reinstated_ = 0;
  std::int64_t salvaged_ = 0;
  Histogram cancel_seconds_{kJobSeconds};
};

}  // namespace quasi::server
