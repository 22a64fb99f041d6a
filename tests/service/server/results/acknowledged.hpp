#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "server/queue/rows.hpp"

namespace quasi::server::test {

inline const std::string kServerRoot = "/data";

/// Answers that a client or worker got, and therefore relies on.
struct Acknowledged {
  std::map<std::string, std::string> job_of_request;  ///< request id → uid
  std::map<std::string, JobState> final_states;
  std::map<std::string, std::set<std::string>> artifacts;  ///< uid → digests
  std::set<std::string> cancelled;
  std::set<std::string> deleted;
  std::set<std::string> held;                       ///< held, and not released since
  std::set<std::string> released;                   ///< released after they were held
  std::map<std::string, std::int32_t> priorities;   ///< uid → as changed
  std::map<std::string, std::string> blobs;         ///< digest → bytes
  std::map<std::string, std::string> logs;          ///< attempt → bytes
  std::map<std::string, std::int64_t> checkpoints;  ///< uid → newest sequence
  std::set<std::int64_t> fences;
  std::map<std::int64_t, std::string> events;  ///< seq → event, as a watcher saw it
};

/// The parts of an event that a watcher sees, as one text.
inline std::string essence(const EventRow& event) {
  return std::to_string(event.job_id) + "/" + std::to_string(event.job_seq) + "/" +
         std::to_string(static_cast<int>(event.to)) + "/" + std::to_string(event.fence);
}

}  // namespace quasi::server::test
