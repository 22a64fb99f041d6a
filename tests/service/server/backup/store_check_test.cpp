// Tests that a check of a store finds each kind of damage, and finds none in a sound store.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/backup/store_check.hpp"
#include "server/store/check/invariant_check.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

namespace fs = std::filesystem;

class StoreCheck : public testing::Test {
 protected:
  StoreCheck() {
    world_ = std::make_unique<QueueWorld>(
        ServerDisk{.files = system_files(), .root = data_, .database = data_ + "/quasi.db"}, clock_,
        random_, QueueOptions{});
    for (std::uint64_t i = 1; i <= 3; ++i)
      world_->apply(
          SubmitJobs{.request_id = uuid_of(i), .body_sha256 = "b", .jobs = {simple_job("a")}});
    const RegisterWorker worker = simple_worker("w_1", 1, 2);
    world_->apply(worker);
    const auto grants = world_->apply(simple_acquire(worker, 1, 2)).grants;
    for (const Grant& grant : grants) world_->apply(StartAttempt{.key = key_of(grant)});
    result_ = world_->put_blob("the result");
    world_->apply(CompleteAttempt{
        .key = key_of(grants.at(0)),
        .artifacts = {{.name = "r", .digest = result_, .size_bytes = 10, .media_type = "t"}}});
  }
  std::vector<std::string> faults(bool deep = false) { return check_store(data_, deep).faults; }
  Database& database() { return world_->engine.database(); }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
  const std::string data_ = root_.path().string();
  std::unique_ptr<QueueWorld> world_;
  std::string result_;
};

TEST_F(StoreCheck, FindsNothingInASoundStore) {
  const StoreReport report = check_store(data_, true);
  EXPECT_TRUE(report.faults.empty()) << report.faults.front();
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(report.jobs, 3);
  EXPECT_EQ(report.files, 1);
  EXPECT_EQ(report.bytes, 10);
}

// Each statement makes one fault that triggers would refuse. Job 1 has succeeded, job 2 runs under
// fence 2, and job 3 waits.
TEST_F(StoreCheck, NamesTheInvariantThatIsBroken) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"I2: more than one attempt succeeded",
       "UPDATE attempts SET job_id=1, number=9, outcome=1, "
       "ended_ms=1 WHERE id=2"},
      {"I2: a result is stored of a job that did not succeed", "UPDATE artifacts SET job_id=3"},
      {"I3: a final state was left", "UPDATE events SET to_state=8 WHERE job_id=1 AND job_seq=2"},
      {"I4: the newest fence is below", "UPDATE counters SET value=1 WHERE name='fence'"},
      {"I4: the newest attempt has another fence", "UPDATE jobs SET fence=1 WHERE id=2"},
      {"I6: the open attempt is another one",
       "UPDATE attempts SET outcome=4, ended_ms=1 WHERE id=2"},
      {"I8: a change of state has no event", "DELETE FROM events WHERE job_id=3"},
      {"I8: a change of state has no event", "UPDATE jobs SET state=2 WHERE id=3"},
      {"I11: a job needs a file that the store does not have", "DELETE FROM blobs"},
      {"a row refers to a missing row", "UPDATE attempts SET job_id=77 WHERE id=1"},
      {"I14: unfinished jobs", "UPDATE usage_totals SET unfinished_jobs=9"},
  };
  database().execute("PRAGMA foreign_keys=OFF");
  Statement triggers(database(),
                     "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM "
                     "sqlite_master WHERE type='trigger'");
  ASSERT_TRUE(triggers.step());
  const std::string drop = triggers.text(0);
  triggers.reset();
  for (const auto& [fault, sql] : faults) {
    SCOPED_TRACE(sql);
    database().execute("SAVEPOINT sound");
    database().execute(drop.c_str());
    database().execute(sql.c_str());
    const auto found = invariant_faults(database(), 4);
    EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                            [&](const std::string& text) { return text.starts_with(fault); }))
        << fault << " is not among " << found.size() << (found.empty() ? "" : ": " + found.front());
    database().execute("ROLLBACK TO sound; RELEASE sound");
  }
  EXPECT_TRUE(invariant_faults(database(), 4).empty());
}

TEST_F(StoreCheck, LooksAtEachFile) {
  const std::string path = world_->blobs.path_of(result_);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  std::ofstream(path) << "the resul!";
  EXPECT_TRUE(faults().empty()) << "the length is right";
  ASSERT_EQ(faults(true).size(), 1u);
  EXPECT_NE(faults(true).front().find("other bytes than its name says"), std::string::npos);
  std::ofstream(path) << "short";
  EXPECT_NE(faults().at(0).find("has 5 bytes instead of 10"), std::string::npos);
  fs::remove(path);
  EXPECT_EQ(faults().at(0), "I11: the file " + result_ + " is missing");
}

TEST_F(StoreCheck, NotesFilesWithoutARow) {
  const std::string digest = world_->put_blob("forgotten");
  world_->run([&](WriteContext& write) {
    write.store.set_blob_state(digest, BlobState::kDeleting);
    write.store.delete_blob(digest);
  });
  const StoreReport report = check_store(data_, false);
  EXPECT_TRUE(report.faults.empty());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_TRUE(report.notes.front().starts_with("1 files have no row")) << report.notes.front();
}

TEST_F(StoreCheck, NamesALogThatIsTooShort) {
  world_->run([](WriteContext& write) {
    for (const AttemptRow& attempt : write.store.open_attempts()) {
      AttemptRow longer = attempt;
      longer.log_bytes = 7;
      write.store.update_attempt(longer);
      write.store.set_folded(attempt.id, 7);
    }
  });
  ASSERT_EQ(faults().size(), 1u);
  EXPECT_NE(faults().front().find("has 0 of 7 bytes"), std::string::npos) << faults().front();
}

}  // namespace
}  // namespace quasi::server::test
