#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/store/read_store.hpp"
#include "server/web/pages/html.hpp"

namespace quasi::server {

/// Data that the page of one job shows.
struct JobPage {
  std::int64_t now_ms = 0;
  JobView job;
  std::vector<AttemptRow> attempts;                 ///< the newest first
  std::map<std::string, std::string> worker_names;  ///< by id
  std::vector<ArtifactRow> artifacts;
  std::vector<EventRow> changes;  ///< of its state, the newest first
  std::string log_tail;           ///< of the newest attempt
  std::int64_t log_bytes = 0;     ///< of the whole log
};

Html job_content(const JobPage& page);

}  // namespace quasi::server
