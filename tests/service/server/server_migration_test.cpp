// Tests that a database of an older version of the schema is copied, changed step by step, and then
// used like a new one. The older database was written by the program of its version.

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "server/store/check/usage_check.hpp"
#include "server/store/migrations/migrations.hpp"
#include "server/store/schema.hpp"
#include "tests/service/server/migrations/golden_database.hpp"
#include "tests/service/support/power_cut_disk.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

namespace fs = std::filesystem;
using Loss = PowerCutDisk::Loss;

const std::string kRoot = "/data";

/// Everything that people and workers rely on: jobs, attempts, fences, events and stored answers.
std::string history_of(Database& database) {
  return rows_of(database, "SELECT id, uid, name, state, fence, job_seq, hex(spec) FROM jobs", 7) +
         rows_of(database, "SELECT uid, job_id, number, fence, outcome, log_bytes FROM attempts",
                 6) +
         rows_of(database, "SELECT seq, job_id, job_seq, type, to_state, fence FROM events", 6) +
         rows_of(database, "SELECT request_id, body_sha256, response FROM requests", 3) +
         rows_of(database, "SELECT * FROM artifacts", 5) +
         rows_of(database, "SELECT * FROM checkpoints", 6) +
         rows_of(database, "SELECT digest, size_bytes, state FROM blobs", 3) +
         rows_of(database, "SELECT * FROM counters", 2);
}

class Migrations : public testing::Test {
 protected:
  void SetUp() override { write_golden(1, path()); }
  std::string path() const { return (root_.path() / "quasi.db").string(); }
  std::string backup() const { return path() + ".backup-v1"; }
  std::unique_ptr<QueueWorld> open() {
    return std::make_unique<QueueWorld>(
        ServerDisk{.files = system_files(), .root = root_.path().string(), .database = path()},
        clock_, random_, QueueOptions{});
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
};

TEST(MigrationSteps, AreNumberedWithoutGaps) {
  std::int32_t expected = 1;
  for (const Migration& step : migrations()) EXPECT_EQ(step.version, expected++);
  EXPECT_EQ(schema_version(), expected - 1);
}

TEST_F(Migrations, AnOldDatabaseKeepsItsHistoryAndGetsTheNewSchema) {
  std::string before;
  {
    Database golden(path(), Database::Mode::kWriter);
    before = history_of(golden);
  }
  const auto world = open();
  Database& database = world->engine.database();
  EXPECT_EQ(version_of(database), schema_version());
  EXPECT_EQ(schema_of(database), schema_of_version(schema_version()));
  EXPECT_EQ(history_of(database), before);
  EXPECT_EQ(world->engine.store_id(), "s_01M83BCCD531PJRM3T2NNS17AG");
  expect_sound(database);

  ASSERT_TRUE(fs::exists(backup()));
  EXPECT_FALSE(fs::exists(backup() + ".part"));
  Database copy(backup(), Database::Mode::kWriter);
  EXPECT_EQ(version_of(copy), 1);
  EXPECT_EQ(schema_of(copy), schema_of_version(1));
  EXPECT_EQ(history_of(copy), before);
}

// The jobs, attempts and blobs of an old database are counted for their owners.
TEST_F(Migrations, TheUseOfAnOldDatabaseIsCounted) {
  {
    // A checkpoint of a principal, and two attempts that ended on one day.
    Database golden(path(), Database::Mode::kWriter);
    for (const Migration& step : migrations())
      if (step.version > 1 && step.version < 10) golden.execute(step.sql);
    golden.execute(
        "PRAGMA user_version = 9; DROP TRIGGER owners_do_not_change; "
        "UPDATE jobs SET owner_id=7, tenant='phonons'; "
        "UPDATE attempts SET gpu_seconds=1.5, wall_seconds=2 WHERE outcome<>0; "
        "CREATE TRIGGER owners_do_not_change BEFORE UPDATE OF owner_id, tenant, visibility ON jobs "
        "BEGIN SELECT RAISE(ABORT, 'I15: the owner and the visibility of a job do not change'); "
        "END;");
    golden.checkpoint(Database::Checkpoint::kTruncate);
  }
  const auto world = open();
  Database& database = world->engine.database();
  EXPECT_EQ(usage_fault(database), "");
  const Used used = world->engine.store().jobs_of_account(Account::of_principal(7));
  EXPECT_EQ(std::to_string(used.unfinished_jobs) + "|\n",
            rows_of(database, "SELECT count(*) FROM jobs WHERE state<7", 1));
  EXPECT_EQ(
      rows_of(database, "SELECT sum(gpu_ms), sum(slot_ms) FROM usage_days", 2),
      rows_of(database, "SELECT 1500*count(*), 2000*count(*) FROM attempts WHERE outcome<>0", 2));
  EXPECT_EQ(rows_of(database, "SELECT bytes FROM stored_bytes", 1),
            rows_of(database, "SELECT sum(size_bytes) FROM checkpoints", 1));
}

// Step 12 writes the table of events anew. The number of an event that was removed before is not
// given again, because watches resume by these numbers.
TEST_F(Migrations, NumbersOfRemovedEventsAreNotGivenAgain) {
  std::int64_t newest = 0;
  {
    Database golden(path(), Database::Mode::kWriter);
    golden.execute("UPDATE sqlite_sequence SET seq=seq+7 WHERE name='events'");
    newest = std::stoll(rows_of(golden, "SELECT max(seq)+7 FROM events", 1));
    golden.checkpoint(Database::Checkpoint::kTruncate);
  }
  const auto world = open();
  EXPECT_EQ(world->engine.store().newest_event(), newest);
  EXPECT_EQ(rows_of(world->engine.database(),
                    "SELECT count(*) FROM sqlite_sequence WHERE name LIKE '%events'", 1),
            "1|\n");
}

TEST_F(Migrations, AnOldDatabaseIsUsedLikeANewOne) {
  const auto world = open();
  Database& database = world->engine.database();
  // The killed server's worker comes back with its two open attempts.
  RegisterWorker worker = simple_worker("w_01M83BCDWRNCWMECH0S983ZRM0", 7, 2);
  for (const AttemptRow& attempt : world->engine.store().open_attempts())
    worker.salvage.push_back({attempt.worker_id, attempt.uid, attempt.fence});
  ASSERT_EQ(worker.salvage.size(), 2u);
  const Registered registered = world->apply(worker);
  for (const Directive directive : registered.salvage) EXPECT_EQ(directive, Directive::kContinue);
  EXPECT_EQ(world->apply(CompleteAttempt{.key = worker.salvage[1]}).state, JobState::kSucceeded);

  const auto grants = world->apply(simple_acquire(worker, 8, 1)).grants;
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].job.name, "waiting");
  EXPECT_EQ(grants[0].attempt.fence, 5) << "I4: the newest fence of the old database is 4";
  world->apply(StartAttempt{.key = key_of(grants[0]),
                            .isolation = IsolationInfo{.is_whole = true, .walls = "all closed"}});
  EXPECT_EQ(rows_of(database, "SELECT fence, isolated, walls FROM attempts WHERE id>=4", 3),
            "4|||\n5|1|all closed|\n");

  const Submitted again = world->apply(
      SubmitJobs{.request_id = "78d16dde-b857-4458-9bc1-2b895f200980",
                 .body_sha256 = "d0758288ca5789da7090e96626ae71cb9324e79129aecb6baa41034cc62bfd8c",
                 .jobs = {simple_job("again")}});
  EXPECT_TRUE(again.replayed) << "I7: the answer was stored before the change";
  expect_sound(database);
}

TEST_F(Migrations, ADatabaseOfANewerVersionIsLeftAlone) {
  const std::string newer = std::to_string(schema_version() + 1);
  {
    Database database(path(), Database::Mode::kWriter);
    database.execute(("PRAGMA user_version = " + newer).c_str());
    database.checkpoint(Database::Checkpoint::kTruncate);
  }
  try {
    open();
    FAIL() << "a newer database was opened";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("has schema " + newer), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(path() + ".backup-v" + newer));
  Database database(path(), Database::Mode::kWriter);
  EXPECT_EQ(schema_of(database), schema_of_version(1));
}

TEST_F(Migrations, WithoutACopyNothingIsChanged) {
  fs::create_directories(fs::path(backup() + ".part") / "in the way");
  EXPECT_ANY_THROW(open());
  Database database(path(), Database::Mode::kWriter);
  EXPECT_EQ(version_of(database), 1);
  EXPECT_EQ(schema_of(database), schema_of_version(1));
}

/// Changes the schema with the power cut before change `point`, and checks what is on the disk.
/// @return false if the change ended before the cut
bool migrate_and_die(std::int64_t point, Loss loss) {
  PowerCutDisk disk(kRoot);
  const std::string path = kRoot + "/quasi.db";
  write_golden(1, path, disk.vfs_name());
  disk.sync_directory(kRoot);
  std::string before;
  {
    Database golden(path, Database::Mode::kWriter, disk.vfs_name());
    before = history_of(golden);
  }
  FakeClock clock;
  SeededRandom random{1};
  const auto open = [&] {
    return std::make_unique<QueueWorld>(
        ServerDisk{.files = disk, .root = kRoot, .database = path, .vfs = disk.vfs_name()}, clock,
        random, QueueOptions{});
  };
  disk.cut_at(point);
  try {
    open();
    return false;
  } catch (const std::exception&) {
    if (!disk.is_cut()) throw;
  }
  disk.restart(loss, static_cast<std::uint64_t>(point));
  {
    Database database(path, Database::Mode::kWriter, disk.vfs_name());
    const std::int64_t version = version_of(database);
    EXPECT_GE(version, 1);
    EXPECT_LE(version, schema_version());
    EXPECT_EQ(schema_of(database), schema_of_version(version)) << "between two versions";
    EXPECT_EQ(history_of(database), before);
    if (version > 1) {
      EXPECT_TRUE(disk.exists(path + ".backup-v1")) << "changed before the copy was safe";
      Database copy(path + ".backup-v1", Database::Mode::kWriter, disk.vfs_name());
      EXPECT_EQ(version_of(copy), 1);
      EXPECT_EQ(history_of(copy), before);
      expect_sound(copy);
    }
  }
  const auto world = open();
  EXPECT_EQ(schema_of(world->engine.database()), schema_of_version(schema_version()));
  EXPECT_EQ(history_of(world->engine.database()), before);
  expect_sound(world->engine.database());
  return true;
}

TEST(MigrationPowerCut, LeavesOneVersionAndTheWholeHistory) {
  std::int64_t points = 0;
  for (const Loss loss : {Loss::kNothing, Loss::kEverything, Loss::kRandomPart})
    for (std::int64_t point = 1; migrate_and_die(point, loss); ++point) {
      ++points;
      ASSERT_FALSE(HasFailure()) << "with the power cut before change " << point;
    }
  std::cout << "crash points: " << points << '\n';
  EXPECT_GE(points, 200);
}

}  // namespace
}  // namespace quasi::server::test
