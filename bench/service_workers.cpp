// Real servers, workers and engines without a GPU: how many no-op jobs five workers finish in a
// second, and how soon a job stops that is cancelled, that ignores its signals, or that crashes.
// The workers have the graces of their defaults. One JSON line each.
//
//   service_workers throughput [jobs = 2000] [slots of each worker = 4]
//   service_workers stops [rounds = 5]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double load() {
  double value = 0.0;
  std::ifstream("/proc/loadavg") >> value;
  return value;
}

void throughput(int n_jobs, const std::string& slots) {
  constexpr int kWorkers = 5;
  Service service;
  service.start_server();
  for (int i = 0; i < kWorkers; ++i)
    service.start_worker("w" + std::to_string(i), {"--slots", slots});
  for (int i = 0; i < 2 * kWorkers; ++i) service.wait_end(service.submit(noop()));
  const auto start = Clock::now();
  const auto ids =
      service.submit(std::vector<v1::JobSpec>(static_cast<std::size_t>(n_jobs), noop()));
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) service.wait_end(*id);
  const double seconds = seconds_since(start);
  std::printf(
      "{\"case\":\"throughput\",\"load\":%.1f,\"workers\":%d,\"slots\":%s,\"jobs\":%d,"
      "\"seconds\":%.1f,\"jobs_per_second\":%.1f}\n",
      load(), kWorkers, slots.c_str(), n_jobs, seconds, n_jobs / seconds);
}

/// Seconds from a cancel, or from the start of the job without one, until the slot is free for the
/// next job: that job has succeeded.
double until_free(Service& service, const v1::JobSpec& spec, bool is_cancelled) {
  auto start = Clock::now();
  const std::string id = service.submit(spec);
  if (is_cancelled) {
    service.wait_state(id, v1::JOB_STATE_RUNNING);
    start = Clock::now();
    service.cancel(id);
  }
  service.wait_end(id);
  return seconds_since(start);
}

void stops(int rounds) {
  Service service;
  service.start_server();
  const std::vector<std::string> graces = {"--cancel-grace-s", "20", "--terminate-grace-s", "10"};
  service.start_worker("w", graces);
  service.wait_end(service.submit(noop()));
  double cooperative = 0.0, crashed = 0.0;
  for (int i = 0; i < rounds; ++i) {
    cooperative = std::max(cooperative, until_free(service, sleep_for(3'600), true));
    v1::JobSpec crash;
    crash.mutable_test()->mutable_signal()->set_number(11);
    crash.mutable_retry()->set_max_attempts(1);
    crashed = std::max(crashed, until_free(service, crash, false));
  }
  const double stubborn = until_free(service, hang(true), true);
  const auto start = Clock::now();
  service.wait_end(service.submit(noop()));
  std::printf(
      "{\"case\":\"stops\",\"load\":%.1f,\"rounds\":%d,\"cooperative_most_s\":%.2f,"
      "\"crashed_most_s\":%.2f,\"stubborn_s\":%.2f,\"next_job_s\":%.2f}\n",
      load(), rounds, cooperative, crashed, stubborn, seconds_since(start));
}

}  // namespace
}  // namespace quasi::test

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const int size = argc > 2 ? std::atoi(argv[2]) : 0;
  try {
    if (name == "throughput")
      quasi::test::throughput(size > 0 ? size : 2'000, argc > 3 ? argv[3] : "4");
    else if (name == "stops")
      quasi::test::stops(size > 0 ? size : 5);
    else
      throw std::runtime_error("the cases are throughput and stops");
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
