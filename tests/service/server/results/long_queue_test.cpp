// Tests that the work of a tick and of a submission does not grow with the queue. Steps of SQLite's
// machine are counted, because times depend on the load of the computer.

#include <sqlite3.h>

#include <functional>

#include "tests/service/server/results/results_fixture.hpp"

namespace quasi::server::test {
namespace {

constexpr int kJobs = 2'000;
/// Steps that a look into an index may take. A scan takes several for each of the jobs.
constexpr std::int64_t kFewSteps = kJobs / 2;

class LongQueue : public ResultsTest {
 protected:
  /// Submits many jobs that wait. With an action they are equal, and all but the first are blocked.
  void fill(const std::string& action) {
    SubmitJobs command{.scope = user_scope(1, "phonons"),
                       .request_id = uuid_of(++calls_),
                       .body_sha256 = "b",
                       .jobs = std::vector<NewJob>(kJobs, job(CachePolicy::kUse, action))};
    world_.apply(command);
  }
  /// Steps of SQLite's machine during a task of the writer, in units of 10.
  std::int64_t steps_of(const std::function<void(WriteContext&)>& task) {
    std::int64_t steps = 0;
    world_.run([&](WriteContext& write) {
      sqlite3* const handle = world_.engine.database().handle();
      const auto count = [](void* sum) {
        *static_cast<std::int64_t*>(sum) += 10;
        return 0;
      };
      sqlite3_progress_handler(handle, 10, count, &steps);
      task(write);
      sqlite3_progress_handler(handle, 0, nullptr, nullptr);
    });
    return steps;
  }
};

TEST_F(LongQueue, ATickReadsNoJobThatMayStart) {
  fill("");
  EXPECT_LT(steps_of([](WriteContext& write) { write.store.promote_delayed(write.now.wall_ms); }),
            kFewSteps);
}

TEST_F(LongQueue, LooksForEqualJobsByTheirState) {
  fill(kAction);
  const SharedAction equals{.share = "owner 1", .action = kAction};
  EXPECT_LT(steps_of([&](WriteContext& write) { write.store.running_equals(equals); }), kFewSteps);
  EXPECT_LT(steps_of([&](WriteContext& write) {
              write.store.waiting_equals(equals, JobState::kQueued, 0, 64);
            }),
            kFewSteps);
}

}  // namespace
}  // namespace quasi::server::test
