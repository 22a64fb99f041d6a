#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/service_load/server_process.hpp"

namespace quasi::bench {

/// Clients with a connection each, which call at a steady rate: 50 % GetJob, 20 % ListJobs of ten
/// jobs, 20 % SubmitJobs of one job and 10 % WatchJobs up to the bookmark.
struct Pace {
  int clients = 200;
  double calls_per_second = 25;  ///< of each client
  double seconds = 60;
};

/// The times of calls from their start to their answer, in milliseconds, by the name of the call.
struct Answers {
  std::map<std::string, std::vector<double>> times_ms;
  int failures = 0;
  double seconds = 0;
  /// Number of all calls.
  std::size_t calls() const;
  /// E.g. `"get_p50_ms":0.41,"get_p99_ms":2.10`, for every call.
  std::string as_json();
};

/// Runs the clients and returns when all have ended. A client that is late makes its next call at
/// once, so that a slow server gets fewer calls.
Answers run_clients(const ServerProcess& server, const Pace& pace);

}  // namespace quasi::bench
