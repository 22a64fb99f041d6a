// Claims from a long queue, without gRPC: the time of a poll of a worker from its start to its
// synced commit, while many jobs of several placements and tenants wait. The workers, of 16 slots
// each, claim in turn. One JSON line.
//
//   service_claims [jobs queued = 1000000] [claims = 2000] [tenants = 100]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

constexpr int kSlots = 16;  // of a worker

using SteadyClock = std::chrono::steady_clock;

/// The server runs submissions and claims without savepoints, too.
constexpr bool kChecksFirst = true;
/// Pages of the write-ahead log above which it is moved into the file, as in the server.
constexpr std::int64_t kCheckpointPages = 1'000;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

/// Moves a long write-ahead log into the file, as the server's writer does after it has answered.
void checkpoint_like_the_server(QueueWorld& world) {
  if (world.engine.wal_pages() > kCheckpointPages)
    world.engine.checkpoint(Database::Checkpoint::kPassive);
}

/// Submits jobs in groups of 1,000, each of the next tenant. Priorities, memory and names differ as
/// those of many users do.
void fill_queue(QueueWorld& world, int n_jobs, int n_tenants) {
  constexpr int kGroup = 1'000;
  for (int first = 0; first < n_jobs; first += kGroup) {
    const int tenant = first / kGroup % n_tenants;
    SubmitJobs command{.scope = user_scope(1 + tenant, "tenant" + std::to_string(tenant)),
                       .request_id = uuid_of(static_cast<std::uint64_t>(first)),
                       .body_sha256 = "b",
                       .jobs = {}};
    for (int i = first; i < std::min(first + kGroup, n_jobs); ++i) {
      NewJob job = simple_job("user" + std::to_string(i % 100) + "-" + std::to_string(i));
      job.row.priority = i % 7 - 3;
      job.row.memory_bytes = i % 5 == 0 ? 0 : std::int64_t{1} << (20 + i % 9);
      job.row.action = wire::sha256_hex(job.row.name);  // No two jobs are equal.
      job.row.cache = CachePolicy::kUse;
      command.jobs.push_back(std::move(job));
    }
    world.run([&](WriteContext& write) { write.queue.apply(command, write.now); }, kChecksFirst);
    checkpoint_like_the_server(world);
  }
}

void claim(int n_jobs, int n_claims, int n_tenants) {
  const quasi::test::TemporaryDirectory root;
  FakeClock clock;
  SystemRandom random;
  QueueWorld world({.files = system_files(),
                    .root = root.path(),
                    .database = (root.path() / "quasi.db").string()},
                   clock, random, {});
  std::vector<RegisterWorker> workers;
  for (int i = 0; i * kSlots < n_claims; ++i) {
    workers.push_back(simple_worker("w_" + std::to_string(i), 1 + i, kSlots));
    world.apply(workers.back());
  }
  auto start = SteadyClock::now();
  fill_queue(world, n_jobs, n_tenants);
  const double batch_per_second = n_jobs / seconds_since(start);
  world.engine.checkpoint(Database::Checkpoint::kTruncate);
  std::vector<double> times_ms;
  for (int i = 0; i < n_claims; ++i) {
    const auto command =
        simple_acquire(workers[i % workers.size()], static_cast<std::uint64_t>(n_jobs + i), 1);
    std::size_t grants = 0;
    start = SteadyClock::now();
    world.run(
        [&](WriteContext& write) { grants = write.queue.apply(command, write.now).grants.size(); },
        kChecksFirst);
    times_ms.push_back(1e3 * seconds_since(start));
    checkpoint_like_the_server(world);
    if (grants != 1) {
      std::fprintf(stderr, "claim %d got %zu jobs\n", i, grants);
      std::exit(1);
    }
  }
  std::sort(times_ms.begin(), times_ms.end());
  const auto at = [&](double share) {
    return times_ms[static_cast<std::size_t>(share * static_cast<double>(times_ms.size() - 1))];
  };
  std::printf(
      "{\"case\":\"claims\",\"queued\":%d,\"claims\":%d,\"tenants\":%d,\"p50_ms\":%.2f,\"p99_ms\":%"
      ".2f,"
      "\"batch_jobs_per_second\":%.0f}\n",
      n_jobs, n_claims, n_tenants, at(0.5), at(0.99), batch_per_second);
}

}  // namespace
}  // namespace quasi::server::test

int main(int argc, char** argv) {
  quasi::server::test::claim(argc > 1 ? std::atoi(argv[1]) : 1'000'000,
                             argc > 2 ? std::atoi(argv[2]) : 2'000,
                             argc > 3 ? std::atoi(argv[3]) : 100);
}
