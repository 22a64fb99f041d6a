// Tests that the steps make the schemas of the golden databases, and that the people, rights,
// quotas, jobs and records of the database of version 12 survive every later step.

#include <gtest/gtest.h>

#include "server/store/audit/audit_store.hpp"
#include "server/store/check/usage_check.hpp"
#include "server/store/schema.hpp"
#include "tests/service/server/migrations/golden_database.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

/// Everything in the database that is about people: who they are and what they may and did do.
std::string people_of(Database& database) {
  return rows_of(database, "SELECT id, name, role, tenant, uid, disabled, pool FROM principals",
                 7) +
         rows_of(database,
                 "SELECT id, key_id, hex(secret_sha256), principal_id, expires_ms, revoked_ms, "
                 "scopes FROM tokens",
                 7) +
         rows_of(database,
                 "SELECT id, hex(secret_sha256), principal_id, expires_ms, used_ms, scopes "
                 "FROM join_codes",
                 6) +
         rows_of(database, "SELECT seq, time_ms, hex(sha256) FROM audit", 3) +
         rows_of(database, "SELECT * FROM principal_allowances", 6) +
         rows_of(database, "SELECT * FROM tenant_allowances", 6) +
         rows_of(database, "SELECT * FROM usage_days", 5) +
         rows_of(database, "SELECT uid, name, state, owner_id, tenant, visibility, fence FROM jobs",
                 7) +
         rows_of(database, "SELECT * FROM blob_holders", 4) +
         rows_of(database, "SELECT attempt_id, at_byte, hex(data) FROM log_tails", 3);
}

class GoldenDatabases : public testing::Test {
 protected:
  std::string path() const { return (root_.path() / "quasi.db").string(); }
  std::unique_ptr<QueueWorld> open() {
    return std::make_unique<QueueWorld>(
        ServerDisk{.files = system_files(), .root = root_.path().string(), .database = path()},
        clock_, random_, QueueOptions{});
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
};

// A step that a release contains does not change any more.
TEST_F(GoldenDatabases, HaveTheSchemasThatTheStepsMake) {
  for (const std::int64_t version : {1, 12}) {
    SCOPED_TRACE(version);
    const std::string file = path() + std::to_string(version);
    write_golden(version, file);
    Database golden(file, Database::Mode::kWriter);
    EXPECT_EQ(version_of(golden), version);
    EXPECT_EQ(schema_of(golden), schema_of_version(version));
    expect_sound(golden);
  }
}

TEST_F(GoldenDatabases, PeopleAndRecordsOfVersion12Stay) {
  write_golden(12, path());
  std::string before;
  {
    Database golden(path(), Database::Mode::kWriter);
    before = people_of(golden);
  }
  ASSERT_NE(before.find("|ada|2|phonons|"), std::string::npos);
  const auto world = open();
  Database& database = world->engine.database();
  EXPECT_EQ(version_of(database), schema_version());
  EXPECT_EQ(schema_of(database), schema_of_version(schema_version()));
  EXPECT_EQ(people_of(database), before);
  const AuditReport audit = check_audit(database);
  EXPECT_EQ(audit.fault, "");
  EXPECT_EQ(audit.rows, 31);
  EXPECT_EQ(usage_fault(database), "");
  expect_sound(database);
}

TEST_F(GoldenDatabases, WorkOfVersion12GoesOn) {
  write_golden(12, path());
  const auto world = open();
  // The worker comes back with its two open attempts.
  RegisterWorker worker = simple_worker("w_01M85YB2BMBV91CNZY35D1N7ND", 7, 3);
  for (const AttemptRow& attempt : world->engine.store().open_attempts())
    worker.salvage.push_back({attempt.worker_id, attempt.uid, attempt.fence});
  ASSERT_EQ(worker.salvage.size(), 2U);
  for (const Directive directive : world->apply(worker).salvage)
    EXPECT_EQ(directive, Directive::kContinue);
  EXPECT_EQ(world->apply(CompleteAttempt{.key = worker.salvage[1]}).state, JobState::kSucceeded);

  // Of the two waiting jobs one is held.
  const auto grants = world->apply(simple_acquire(worker, 8, 2)).grants;
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].job.name, "waiting");
  EXPECT_EQ(grants[0].job.priority, 5);
  EXPECT_EQ(grants[0].attempt.fence, 6) << "I4: the newest fence of the database is 5";

  const Submitted again = world->apply(
      SubmitJobs{.scope = user_scope(4, "phonons"),
                 .request_id = "385f0ba7-db40-4ef2-8391-1659f55d9f9d",
                 .body_sha256 = "8c79f9ea4d884d017b7c7d47e5bf3209528eacc0005bbaad3f3159910b2a996f",
                 .jobs = {simple_job("again")}});
  EXPECT_TRUE(again.replayed) << "I7: the answer was stored by the program of version 12";
  EXPECT_EQ(usage_fault(world->engine.database()), "");
  expect_sound(world->engine.database());
}

// A user's quota of the old database is enforced: 50 unfinished jobs, of which 3 exist.
TEST_F(GoldenDatabases, QuotasOfVersion12Hold) {
  write_golden(12, path());
  const auto world = open();
  const auto submit = [&](std::uint64_t request, std::size_t jobs) {
    SubmitJobs command{
        .scope = user_scope(4, "phonons"), .request_id = uuid_of(request), .body_sha256 = "body"};
    for (std::size_t i = 0; i < jobs; ++i) command.jobs.push_back(simple_job(std::to_string(i)));
    return world->apply(command).uids.size();
  };
  EXPECT_THROW(submit(1, 48), Refused);
  EXPECT_EQ(submit(2, 47), 47U);
}

}  // namespace
}  // namespace quasi::server::test
