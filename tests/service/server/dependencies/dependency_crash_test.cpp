// The power is cut before every change that a server makes to the disk while jobs wait for others
// and sets of jobs run, stop and are cancelled. After the restart no job waits in vain, no job goes
// on too early, every acknowledged answer holds, and the work can be finished.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "server/store/check/invariant_check.hpp"
#include "tests/service/files/power_cut_sweep.hpp"
#include "tests/service/support/power_cut_disk.hpp"
#include "tests/service/support/queue_world.hpp"

namespace quasi::server::test {
namespace {

using Loss = PowerCutDisk::Loss;

const std::string kRoot = "/data";

/// A server whose jobs wait for each other, until the power is cut.
class WaitingStory {
 public:
  explicit WaitingStory(PowerCutDisk& disk) : disk_(disk) {}

  void open() {
    world_ = std::make_unique<QueueWorld>(ServerDisk{.files = disk_,
                                                     .root = kRoot,
                                                     .database = kRoot + "/quasi.db",
                                                     .vfs = disk_.vfs_name()},
                                          clock_, random_, QueueOptions{});
  }
  void close() { world_.reset(); }
  Database& database() { return world_->engine.database(); }

  /// Numbered submissions: a chain, a set that stops after a failure, and one that is cancelled.
  SubmitJobs submission(int number) const {
    SubmitJobs command{.scope = user_scope(1, "phonons"),
                       .request_id = uuid_of(static_cast<std::uint64_t>(number)),
                       .body_sha256 = "body",
                       .jobs = {}};
    if (number == 0) {
      command.jobs.assign(4, simple_job("chain"));
      command.jobs[1].artifact_inputs = {
          {.slot = "eps", .job = {.uid = {}, .index = 0}, .artifact = "result.h5", .field = "f"}};
      command.jobs[2].dependencies = {{.job = {.uid = {}, .index = 1}, .field = "f"}};
      command.jobs[3].dependencies = {
          {.job = {.uid = {}, .index = 0}, .condition = Condition::kFinished, .field = "f"}};
      return command;
    }
    JobSetRow set;
    set.name = "sweep";
    set.max_concurrent = 2;
    set.stop_after_failures = number == 1 ? 1 : 0;
    command.set = set;
    command.jobs.assign(5, simple_job("sweep"));
    return command;
  }
  Submitted submit(int number) {
    pending_ = number;
    const Submitted submitted = world_->apply(submission(number));
    told_[number] = submitted;
    pending_.reset();
    return submitted;
  }

  void live() {
    world_->apply(worker_);
    const Submitted chain = submit(0);
    const Submitted stopping = submit(1);
    Grant first = start();
    succeed(first);  // The second job of the chain has its input now.
    Grant other = start();
    while (other.job.name != "sweep") other = start();
    fail(other);  // The other jobs of the set stop.
    world_->engine.checkpoint(Database::Checkpoint::kPassive);
    const Submitted cancelled = submit(2);
    world_->apply(CancelJobs{.scope = user_scope(1, "phonons"),
                             .request_id = "",
                             .body_sha256 = "",
                             .uids = {},
                             .reason = "",
                             .set_uid = cancelled.set_uid});
    for (const std::string& uid : cancelled.uids) ends_[uid] = JobState::kCancelled;
    ends_.erase(first.job.uid);
    world_->apply(DeleteJobs{.scope = user_scope(1, "phonons"),
                             .request_id = "",
                             .body_sha256 = "",
                             .uids = {first.job.uid},
                             .reason = ""});
  }

  /// Repeats the request in flight, and runs all jobs to their ends.
  void finish() {
    if (pending_) submit(*pending_);
    for (const auto& [number, submitted] : std::map(told_)) {
      const Submitted again = world_->apply(submission(number));
      EXPECT_TRUE(again.replayed) << "I7";
      EXPECT_EQ(again.uids, submitted.uids);
      EXPECT_EQ(again.set_uid, submitted.set_uid);
    }
    clock_.advance(1'000'000);
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    clock_.advance(1'000'000);
    worker_ = simple_worker("w_B", 2, 16);
    world_->apply(worker_);
    world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    while (true) {
      const auto grants = world_->apply(simple_acquire(worker_, ++acquires_, 1)).grants;
      if (grants.empty()) break;
      world_->apply(StartAttempt{key_of(grants[0])});
      succeed(grants[0]);
    }
  }

  void check() {
    EXPECT_EQ(number_of("SELECT count(*) FROM jobs j WHERE state<3 AND unmet <> (SELECT count(*) "
                        "FROM job_dependencies d JOIN jobs o ON o.id=d.on_job WHERE "
                        "d.job_id=j.id AND o.state<7)"),
              0)
        << "a job waits for jobs that have ended, or for too few";
    EXPECT_EQ(number_of("SELECT count(*) FROM jobs WHERE state=1 AND unmet=0 AND set_waits=0"), 0)
        << "a job waits for nothing";
    EXPECT_EQ(number_of("SELECT count(*) FROM jobs j JOIN job_dependencies d ON d.job_id=j.id "
                        "JOIN jobs o ON o.id=d.on_job WHERE d.condition=1 AND o.state>7 AND "
                        "j.state NOT IN (8, 9)"),
              0)
        << "a job outlives the failure of one whose success it needs";
    EXPECT_EQ(number_of("SELECT count(*) FROM job_sets s WHERE (SELECT count(*) FROM jobs WHERE "
                        "set_id=s.id AND state IN (3,4,5,6)) > s.max_concurrent OR ((SELECT "
                        "count(*) FROM jobs WHERE set_id=s.id AND state IN (3,4,5,6)) < "
                        "s.max_concurrent AND EXISTS (SELECT 1 FROM jobs WHERE set_id=s.id AND "
                        "set_waits=1 AND state=1))"),
              0)
        << "a set runs too many jobs, or too few";
    EXPECT_EQ(number_of("SELECT count(*) FROM job_sets s WHERE (SELECT count(*) FROM jobs WHERE "
                        "set_id=s.id) <> 5"),
              0)
        << "a sweep is there in part";
    EXPECT_EQ(number_of("SELECT count(*) FROM artifact_inputs a JOIN jobs j ON j.id=a.job_id WHERE "
                        "j.unmet=0 AND j.state<8 AND NOT EXISTS (SELECT 1 FROM job_inputs i WHERE "
                        "i.job_id=a.job_id AND i.slot=a.slot)"),
              0)
        << "a job goes on without its input";
    EXPECT_EQ(invariant_faults(database(), 4), std::vector<std::string>());
    SqliteStore& store = world_->engine.store();
    for (const auto& [uid, state] : ends_) {
      const auto job = store.find_job(Scope::everything(), uid);
      ASSERT_TRUE(job) << "I1";
      EXPECT_EQ(job->state, state) << "I3";
    }
  }
  std::int64_t number_of(const std::string& sql) {
    Statement statement(database(), sql);
    return statement.step() ? statement.integer(0) : -1;
  }

 private:
  Grant start() {
    const auto grants = world_->apply(simple_acquire(worker_, ++acquires_, 1)).grants;
    world_->apply(StartAttempt{key_of(grants.at(0))});
    return grants[0];
  }
  void succeed(const Grant& grant) {
    const std::string bytes = "made by " + grant.job.uid;
    const std::string digest = world_->put_blob(bytes);
    world_->apply(
        CompleteAttempt{.key = key_of(grant),
                        .artifacts = {{.name = "result.h5",
                                       .digest = digest,
                                       .size_bytes = static_cast<std::int64_t>(bytes.size()),
                                       .media_type = ""}},
                        .summary_json = "{}",
                        .failure = {},
                        .usage = {},
                        .report_digest = "r" + digest});
    ends_[grant.job.uid] = JobState::kSucceeded;
  }
  void fail(const Grant& grant) {
    world_->apply(
        CompleteAttempt{.key = key_of(grant),
                        .outcome = AttemptOutcome::kFailed,
                        .artifacts = {},
                        .summary_json = {},
                        .failure = {.reason = FailureReason::kInvalidInput, .message = "no"},
                        .usage = {},
                        .report_digest = "failed"});
    ends_[grant.job.uid] = JobState::kFailed;
  }

  PowerCutDisk& disk_;
  SeededRandom random_{42};
  FakeClock clock_;
  std::unique_ptr<QueueWorld> world_;
  RegisterWorker worker_ = simple_worker("w_A", 1, 16);
  std::uint64_t acquires_ = 1'000;
  std::map<int, Submitted> told_;         ///< answers, by the number of the submission
  std::map<std::string, JobState> ends_;  ///< final states that were acknowledged
  std::optional<int> pending_;            ///< a submission without an answer
};

bool live_and_die(std::int64_t point, Loss loss) {
  PowerCutDisk disk(kRoot);
  WaitingStory story(disk);
  disk.cut_at(point);
  bool died = false;
  try {
    story.open();
    story.live();
  } catch (const StorageFatal&) {
    died = true;
  } catch (const FileError&) {
    died = true;
  } catch (const SqliteError&) {  // The power is cut while the database is opened.
    died = true;
  }
  if (!died) return false;
  story.close();
  disk.restart(loss, static_cast<std::uint64_t>(point));
  try {
    story.open();
    story.check();
    if (!testing::Test::HasFailure()) {
      story.finish();
      EXPECT_EQ(story.number_of("SELECT count(*) FROM jobs WHERE state<7"), 0)
          << "I1: a job that does not end";
      story.check();
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << "after the restart: " << error.what();
  }
  return true;
}

class WaitingJobs : public PowerCutSweep {};

TEST_P(WaitingJobs, SurviveAPowerCutBeforeEveryChange) {
  sweep([](std::int64_t point, Loss loss) { return live_and_die(point, loss); }, 200);
}

INSTANTIATE_TEST_SUITE_P(, WaitingJobs, all_losses(), name_of_loss);

}  // namespace
}  // namespace quasi::server::test
