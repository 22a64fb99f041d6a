// Stories from seeds: users, an operator, workers and a server live through faults of network,
// disks and processes, and a judge compares their history with the invariants of
// docs/invariants.md.
//
// QUASI_SEED=n runs the story of one seed, and QUASI_SEEDS=m those of m seeds from n or 1 on.
// QUASI_EVENTS sets the number of events before the faults stop.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "server/service/log.hpp"
#include "tests/service/simulator/story.hpp"

namespace quasi::sim {
namespace {

std::int64_t number_of(const char* name, std::int64_t otherwise) {
  const char* given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoll(given, nullptr, 10);
}

Verdict run_story(std::uint64_t seed, std::int64_t n_events) {
  server::set_log_level(wire::LogLevel::kError);
  const quasi::test::TemporaryDirectory folder;
  Story story(seed, std::filesystem::canonical(folder.path()));
  return story.run(n_events);
}

class Simulator : public testing::Test {
 protected:
  static constexpr std::int64_t kEvents = 2'000;

  // The journals of clients are real files, and a file system in memory halves the time of a story.
  static void SetUpTestSuite() {
    if (std::filesystem::is_directory("/dev/shm")) setenv("TMPDIR", "/dev/shm", 0);
  }
};

TEST_F(Simulator, StoriesFromSeedsKeepEveryInvariant) {
  const std::int64_t first = number_of("QUASI_SEED", 1);
  const bool is_one = std::getenv("QUASI_SEED") != nullptr;
  const std::int64_t n_seeds = number_of("QUASI_SEEDS", is_one ? 1 : 50);
  const std::int64_t n_events = number_of("QUASI_EVENTS", kEvents);
  std::map<std::string, int> counts;
  std::int64_t events = 0, virtual_ms = 0, calm_ms = 0, longest_calm_ms = 0;
  for (std::int64_t seed = first; seed < first + n_seeds; ++seed) {
    const Verdict verdict = run_story(static_cast<std::uint64_t>(seed), n_events);
    ASSERT_EQ(verdict.violation, "")
        << "seed " << seed << ". This command repeats it:\n  QUASI_SEED=" << seed
        << " QUASI_EVENTS=" << n_events << " bin/simulator_test --gtest_filter=*Stories*\n"
        << "The last lines of its history:\n"
        << verdict.last_lines;
    events += verdict.events;
    virtual_ms += verdict.virtual_ms;
    calm_ms += verdict.calm_ms;
    longest_calm_ms = std::max(longest_calm_ms, verdict.calm_ms);
    counts["jobs"] += static_cast<int>(verdict.jobs);
    counts["server starts"] += verdict.server_starts;
    for (const auto& [what, count] : verdict.counts) counts[what] += count;
  }
  std::cout << n_seeds << " seeds, " << events << " events, " << virtual_ms / 60'000
            << " minutes of virtual time, of these " << calm_ms / 60'000
            << " without faults, in one story at most " << longest_calm_ms / 1'000 << " s";
  for (const auto& [what, count] : counts) std::cout << ", " << what << ' ' << count;
  std::cout << '\n';
}

TEST_F(Simulator, OneSeedGivesOneHistory) {
  const Verdict first = run_story(7, 1'000);
  const Verdict again = run_story(7, 1'000);
  EXPECT_EQ(first.digest, again.digest);
  EXPECT_NE(first.digest, run_story(8, 1'000).digest);
}

}  // namespace
}  // namespace quasi::sim
