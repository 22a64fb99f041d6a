#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "quasi/v1/job.pb.h"

namespace quasi::test {

/// Compares the events with the promises. It uses the ids that clients received, the final jobs of
/// the server, and the daemons' logs.
class History {
 public:
  /// Records that the server acknowledged this job.
  void acknowledged(const std::string& job_id) { acknowledged_.insert(job_id); }
  /// Records a job of the final dump, with its attempts.
  void dumped(const v1::Job& job) { jobs_[job.id()] = job; }
  /// Reads a daemon's log, which contains every attempt whose end the server accepted.
  void worker_log(const std::string& worker, const std::string& text);
  /// Records a jump of the wall clock (positive: backwards), because the times of jobs come from
  /// it.
  void clock_set_back(std::int64_t milliseconds) {
    set_back_ms_ += std::max<std::int64_t>(milliseconds, 0);
  }

  struct Verdict {
    int lost = 0;       ///< acknowledged, but missing or not ended (I1)
    int failed = 0;     ///< ended in another state than SUCCEEDED
    int doubles = 0;    ///< more than one success, or two attempts open at once (I2, I6)
    int stale = 0;      ///< effects under a fence that was not current (I4, I5)
    int uncounted = 0;  ///< attempts above the limit (I13)
    std::vector<std::string> offences;  ///< one line each
    bool clean() const { return offences.empty(); }
  };
  Verdict judge() const;

  std::size_t attempts() const;
  /// Number of attempts by outcome, for the report.
  std::map<std::string, int> outcomes() const;

 private:
  void judge_job(const v1::Job& job, Verdict& verdict) const;

  std::set<std::string> acknowledged_;
  std::map<std::string, v1::Job> jobs_;
  std::map<std::string, std::set<std::uint64_t>>
      accepted_;  ///< fences of accepted successes, by job
  std::int64_t set_back_ms_ = 0;
};

}  // namespace quasi::test
