#include "tests/service/server/disk/story_checks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "server/store/check/usage_check.hpp"

namespace quasi::server::test {

std::int64_t number(Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.integer(0) : -1;
}

namespace {

/// The database is sound.
void expect_sound_database(Database& database) {
  Statement integrity(database, "PRAGMA integrity_check");
  ASSERT_TRUE(integrity.step());
  EXPECT_EQ(integrity.text(0), "ok");
  EXPECT_EQ(number(database, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

}  // namespace

void expect_promises_kept(ServerStory& story) {
  Database& database = story.database();
  const Acknowledged& told = story.told();
  SqliteStore& store = story.world().engine.store();
  for (const auto& [request, uid] : told.job_of_request)
    EXPECT_TRUE(store.find_job(Scope::everything(), uid)) << "I1: an acknowledged job is gone";
  for (const auto& [uid, state] : told.final_states) {
    const auto job = store.find_job(Scope::everything(), uid);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->state, state) << "I3";
  }
  for (const auto& [uid, digests] : told.artifacts) {
    std::set<std::string> found;
    Statement rows(database, "SELECT digest FROM artifacts WHERE job_id=?");
    rows.bind(store.find_job(Scope::everything(), uid)->id);
    while (rows.step()) found.insert(rows.text(0));
    EXPECT_EQ(found, digests) << "I2";
  }
  for (const std::string& uid : told.cancelled) {
    const JobState state = store.find_job(Scope::everything(), uid)->state;
    EXPECT_TRUE(state == JobState::kCancelled || state == JobState::kCancelling) << "I12";
  }
  for (const std::string& uid : told.held)
    EXPECT_EQ(store.find_job(Scope::everything(), uid)->state, JobState::kHeld);
  for (const std::string& uid : told.released)
    EXPECT_EQ(store.find_job(Scope::everything(), uid)->state, JobState::kQueued);
  for (const auto& [uid, priority] : told.priorities)
    EXPECT_EQ(store.find_job(Scope::everything(), uid)->priority, priority);
  for (const std::string& uid : told.deleted)
    EXPECT_FALSE(store.find_job(Scope::everything(), uid)) << "came back";
  for (const std::int64_t fence : told.fences) EXPECT_LE(fence, store.newest_fence()) << "I4";
}

namespace {

/// I6, I7, I8, I13: attempts, submissions, events and counts of attempts agree with each other.
void expect_consistent_rows(Database& database) {
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM (SELECT job_id FROM attempts WHERE outcome=0 "
                   "GROUP BY job_id HAVING count(*)>1)"),
            0)
      << "I6";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM jobs j WHERE (state IN (4,5,6)) <> EXISTS "
                   "(SELECT 1 FROM attempts a WHERE a.id=j.open_attempt AND "
                   "a.outcome=0 AND a.fence=j.fence)"),
            0)
      << "I6";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM (SELECT name FROM jobs GROUP BY name HAVING "
                   "count(*)>1)"),
            0)
      << "I7: a submission took effect twice";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM jobs j WHERE job_seq <> (SELECT count(*) FROM "
                   "events e WHERE e.job_id=j.id AND e.type=1) OR job_seq <> (SELECT "
                   "max(job_seq) FROM events e WHERE e.job_id=j.id)"),
            0)
      << "I8";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM jobs j WHERE state <> (SELECT to_state FROM "
                   "events e WHERE e.job_id=j.id AND e.job_seq=j.job_seq)"),
            0)
      << "I8";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM jobs j WHERE grants <> (SELECT count(*) FROM "
                   "attempts a WHERE a.job_id=j.id) OR attempts <> (SELECT "
                   "coalesce(sum(counted),0) FROM attempts a WHERE a.job_id=j.id)"),
            0)
      << "I13";
}

/// I1: each blocked job waits for an equal one that runs or is queued.
void expect_no_job_forgotten(Database& database) {
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM jobs j WHERE state=1 AND NOT EXISTS (SELECT 1 FROM jobs o "
                   "WHERE o.action=j.action AND o.tenant=j.tenant AND o.state IN (3, 4, 5))"),
            0)
      << "I1: a job waits for nothing";
}

/// I9: every event that a watcher saw is still there.
void expect_events_kept(ServerStory& story) {
  Database& database = story.database();
  const Acknowledged& told = story.told();
  Statement events(database,
                   "SELECT seq, job_id, job_seq, to_state, fence FROM events WHERE type=1");
  std::map<std::int64_t, std::string> present;
  while (events.step())
    present[events.integer(0)] = essence({.job_id = events.integer(1),
                                          .job_seq = events.integer(2),
                                          .to = static_cast<JobState>(events.small(3)),
                                          .fence = events.integer(4)});
  for (const auto& [seq, text] : told.events)
    EXPECT_EQ(present[seq], text) << "I9: an event that a watcher saw is gone";
}

/// Expects every acknowledged blob and log on the disk with its bytes (I10 and I11 of
/// docs/invariants.md).
void expect_files_kept(ServerStory& story) {
  Database& database = story.database();
  const Acknowledged& told = story.told();
  SqliteStore& store = story.world().engine.store();
  for (const auto& [digest, bytes] : told.blobs)
    EXPECT_TRUE(store.blob_size(Scope::everything(), digest)) << "I11";
  Statement blobs(database, "SELECT digest, size_bytes FROM blobs WHERE state=1");
  while (blobs.step()) {
    const std::string digest = blobs.text(0);
    ASSERT_TRUE(story.world().blobs.has(digest)) << "I11: a row without its file";
    const auto file = story.world().blobs.open(digest);
    std::string bytes(file->size(), '\0');
    file->read(0, bytes.data(), bytes.size());
    EXPECT_EQ(wire::sha256_hex(bytes), digest) << "I10";
    EXPECT_EQ(static_cast<std::int64_t>(bytes.size()), blobs.integer(1));
  }
  for (const std::string& digest : story.world().blobs.stored())
    EXPECT_TRUE(store.blob_state(digest)) << "I11: a file without a row fills the disk for ever";
  for (const auto& [uid, bytes] : told.logs) {
    const auto attempt = store.find_attempt(uid);
    ASSERT_TRUE(attempt && attempt->log_bytes >= static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(story.log_bytes(uid).substr(0, bytes.size()), bytes);
  }
}

}  // namespace

void expect_nothing_left_of_deleted(ServerStory& story) {
  Statement rows(story.database(),
                 "SELECT a.uid, j.logs_removed FROM attempts a JOIN jobs j ON j.id=a.job_id "
                 "WHERE j.deleted_ms>0");
  while (rows.step()) {
    EXPECT_EQ(rows.integer(1), 1);
    EXPECT_THROW(story.world().logs.read(rows.text(0), 0, 1), FileError) << "a log is left";
  }
  EXPECT_EQ(number(story.database(),
                   "SELECT count(*) FROM artifacts a JOIN jobs j ON "
                   "j.id=a.job_id WHERE j.deleted_ms>0"),
            0);
}

namespace {

/// The audit is an unbroken chain. Each submission has its row unless its age has removed it, and
/// no row names a submission that did not take effect.
void expect_audit_kept(Database& database) {
  const AuditReport report = check_audit(database);
  EXPECT_EQ(report.fault, "");
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM jobs j WHERE created_ms >= (SELECT min(time_ms) FROM "
                   "audit) AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.method='SubmitJobs' "
                   "AND a.target = j.uid || char(10))"),
            0)
      << "an act without its row";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM audit WHERE method='SubmitJobs' AND target NOT IN "
                   "(SELECT uid || char(10) FROM jobs)"),
            0)
      << "a row without its act";
}

/// I14: the totals by which quotas are checked are right, and none exceeds its quota.
void expect_quotas_kept(Database& database) {
  EXPECT_EQ(usage_fault(database), "") << "I14";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM usage_totals WHERE unfinished_jobs>3 OR running_gpus>2"),
            0)
      << "I14: the quota of a user";
  EXPECT_EQ(number(database,
                   "SELECT count(*) FROM (SELECT tenant FROM usage_totals GROUP BY tenant "
                   "HAVING sum(running_gpus)>2)"),
            0)
      << "I14: the quota of a tenant";
}

}  // namespace

void check(ServerStory& story) {
  expect_sound_database(story.database());
  expect_promises_kept(story);
  expect_consistent_rows(story.database());
  expect_no_job_forgotten(story.database());
  expect_events_kept(story);
  expect_audit_kept(story.database());
  expect_quotas_kept(story.database());
  expect_files_kept(story);
}

}  // namespace quasi::server::test
