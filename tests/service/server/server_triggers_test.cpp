// Tests the triggers and constraints by which the database repeats the rules. Each statement here
// breaks one rule. It must be refused with the rule's own text and change nothing.

#include <gtest/gtest.h>

#include "server/store/schema.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

class Triggers : public testing::Test {
 protected:
  Triggers() : world_({.files = system_files(), .root = root_.path()}, clock_, random_, {}) {
    digest_ = world_.put_blob("a result");
    NewJob job = simple_job("one");
    job.inputs.push_back({.slot = "deck", .digest = digest_, .size_bytes = 8});
    world_.apply(SubmitJobs{.request_id = uuid_of(1), .body_sha256 = "b", .jobs = {job}});
    world_.apply(SubmitJobs{.request_id = uuid_of(2),
                            .body_sha256 = "b",
                            .jobs = {simple_job("two"), simple_job("three")}});
    const auto worker = simple_worker("w_1", 1, 2);
    world_.apply(worker);
    const auto grants = world_.apply(simple_acquire(worker, 5, 2)).grants;
    world_.apply(StartAttempt{key_of(grants.at(0))});
    CompleteAttempt done;
    done.key = key_of(grants[0]);
    done.artifacts = {{.name = "result.h5", .digest = digest_, .size_bytes = 8, .media_type = ""}};
    done.report_digest = "r";
    world_.apply(done);
  }

  void expect_refused(const std::string& sql, const std::string& words) {
    try {
      world_.engine.database().execute(sql.c_str());
      ADD_FAILURE() << "was let through: " << sql;
    } catch (const SqliteError& error) {
      EXPECT_TRUE(error.is_constraint()) << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  quasi::test::TemporaryDirectory root_;
  FakeClock clock_;
  SeededRandom random_{7};
  QueueWorld world_;
  std::string digest_;
};

// Job 1 has SUCCEEDED with an artefact, job 2 is LEASED, job 3 is QUEUED.
TEST_F(Triggers, EachRefusesWhatItGuards) {
  expect_refused("UPDATE jobs SET state=3, ended_ms=0, job_seq=job_seq+1 WHERE id=1", "I3");
  expect_refused("UPDATE jobs SET fence=0 WHERE id=1", "I4: a fence may not be lowered");
  expect_refused("UPDATE counters SET value=0 WHERE name='fence'", "I4: a counter");
  expect_refused("UPDATE jobs SET state=9, ended_ms=5 WHERE id=3", "I8: a change of state");
  expect_refused("UPDATE jobs SET spec=x'00' WHERE id=3", "I1: what was submitted");
  expect_refused("DELETE FROM jobs WHERE id=3", "I1: a job is not deleted");
  expect_refused("UPDATE attempts SET fence=99 WHERE id=1", "I4: the fence of an attempt");
  expect_refused(
      "INSERT INTO attempts (uid, job_id, number, fence, worker_id, incarnation, "
      "device_ids, acquire_id, granted_ms) VALUES ('a_x', 3, 1, 1, 'w', 'i', '', '', 1)",
      "I4: a new attempt takes the newest fence");
  expect_refused("UPDATE attempts SET log_bytes=-1 WHERE id=1", "a log may not become shorter");
  expect_refused("DELETE FROM attempts WHERE id=1", "I13: an attempt is not deleted");
  expect_refused("INSERT INTO checkpoints VALUES (2, 1, 1, 'd', 1, 77, 1)", "I5");
  expect_refused("INSERT INTO artifacts VALUES (1, 'late', 'd', 1, '')", "I2: artefacts come");
  expect_refused("UPDATE artifacts SET digest='d' WHERE job_id=1",
                 "I2: an artefact does not change");
  expect_refused("DELETE FROM artifacts WHERE job_id=1", "I2: an artefact goes with its job");
  expect_refused("DELETE FROM job_inputs WHERE job_id=1", "I1: an input goes with its job");
  expect_refused("UPDATE jobs SET deleted_ms=5 WHERE id=3", "I1: only a final job is deleted");
  expect_refused("UPDATE attempts SET folded_bytes=99 WHERE id=1", "the part of a log in its file");
  expect_refused("UPDATE jobs SET logs_removed=1 WHERE id=1", "logs of a job stay");
  expect_refused("UPDATE jobs SET spec=x'' WHERE id=1", "I1: what was submitted");
  expect_refused("UPDATE blobs SET state=2 WHERE digest='" + digest_ + "'", "I11: a referenced");
  expect_refused("DELETE FROM blobs", "I11: a blob is marked");
  expect_refused("UPDATE requests SET response='' ", "I7");
  expect_refused(
      "INSERT INTO events (job_id, job_seq, time_ms, type, to_state) "
      "VALUES (3, 2, 1, 1, 9)",
      "I8: an event says what its job is");
  expect_refused("UPDATE events SET to_state=9", "I8: an event does not change");
  expect_refused("DELETE FROM events", "I8: a change of state is not forgotten");
  world_.engine.database().execute(
      "INSERT INTO principals (id, name, role, tenant, created_ms) VALUES (1, 'ada', 2, 'p', 0); "
      "INSERT INTO tokens (key_id, secret_sha256, principal_id, created_ms, expires_ms, scopes) "
      "VALUES ('AAAAAAAAAAAA', zeroblob(32), 1, 0, 9, 1); "
      "INSERT INTO join_codes (secret_sha256, principal_id, created_ms, expires_ms, scopes) "
      "VALUES (zeroblob(32), 1, 0, 9, 1)");
  expect_refused("UPDATE join_codes SET scopes=15", "the scopes of a code do not change");
  expect_refused("UPDATE tokens SET scopes=15", "the scopes of a token do not change");
}

TEST_F(Triggers, ConstraintsRefuseContradictions) {
  expect_refused("UPDATE jobs SET open_attempt=1 WHERE id=3", "open_attempt_and_state_go_together");
  expect_refused("UPDATE jobs SET open_attempt=NULL WHERE id=2",
                 "open_attempt_and_state_go_together");
  expect_refused("UPDATE jobs SET attempts=max_attempts+1, grants=9 WHERE id=3",
                 "attempts_within_limits");
  expect_refused("UPDATE jobs SET grants=max_attempts+21 WHERE id=3", "attempts_within_limits");
  expect_refused("UPDATE jobs SET ended_ms=0 WHERE id=1", "a_final_job_has_ended");
  // A second open attempt of job 2, with the newest fence.
  world_.engine.database().execute("UPDATE counters SET value=value+1 WHERE name='fence'");
  expect_refused(
      "INSERT INTO attempts (uid, job_id, number, fence, worker_id, incarnation, "
      "device_ids, acquire_id, granted_ms) SELECT 'a_y', 2, 9, value, 'w', 'i', '', '', "
      "1 FROM counters WHERE name='fence'",
      "UNIQUE constraint failed: attempts.job_id");
  expect_refused("INSERT INTO job_inputs VALUES (99, 'deck', 'd', 1)", "FOREIGN KEY");
  expect_refused("INSERT INTO meta VALUES ('k', 5)", "cannot store INT value");
}

TEST(Schema, RefusesAnotherProgramsDatabaseAndANewerOne) {
  const DatabasePlace place{.path = ":memory:", .vfs = {}, .files = system_files()};
  Database foreign(":memory:", Database::Mode::kWriter);
  foreign.execute("PRAGMA application_id = 12345");
  EXPECT_THROW(prepare_schema(foreign, place), std::runtime_error);
  Database newer(":memory:", Database::Mode::kWriter);
  newer.execute("PRAGMA application_id = 1364541779; PRAGMA user_version = 999");
  EXPECT_THROW(prepare_schema(newer, place), std::runtime_error);
}

}  // namespace
}  // namespace quasi::server::test
