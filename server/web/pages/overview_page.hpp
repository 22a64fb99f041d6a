#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/store/figures/figure_store.hpp"
#include "server/store/read_store.hpp"
#include "server/web/pages/page_frame.hpp"
#include "server/web/web_parts.hpp"

namespace quasi::server {

/// Data that the first page shows.
struct Overview {
  std::int64_t now_ms = 0;
  ServerState state;
  std::vector<UnfinishedJobs> everybody;  ///< sums of all jobs, by state and pool
  StoredFiles stored;
  std::vector<WorkerStatus> workers;
  std::map<std::string, DeviceHistory> devices;  ///< by worker id, "/" and device id
  Series queued, running;                        ///< of all jobs

  // The members below stay empty without a token.
  bool has_jobs = false;                ///< a token was given
  std::vector<UnfinishedJobs> visible;  ///< jobs that the visitor may see
  std::vector<JobView> open, waiting, failed;
  std::vector<OpenSlot> slots;  ///< with the ids of visible jobs
};

Html overview_content(const Overview& overview);

/// A job as a row of a table shows it: a link with its name.
void add_job_link(Html& html, const std::string& uid, const std::string& name);
/// The word of a state in the colour of its meaning.
void add_state(Html& html, JobState state);
/// The progress of a job: phase and bar; nothing before the first report.
void add_progress(Html& html, const std::string& serialised);

}  // namespace quasi::server
