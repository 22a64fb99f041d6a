// Tests that the use of principals and tenants is counted with each change of a job, an attempt or
// a blob.

#include <gtest/gtest.h>

#include "server/store/check/usage_check.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

class Accounts : public testing::Test {
 protected:
  Accounts() { world_.apply(worker_); }

  std::string submit(std::int64_t principal, const std::string& tenant,
                     std::int64_t max_runtime_ms = kHourMs) {
    NewJob job = simple_job("job");
    job.row.max_runtime_ms = max_runtime_ms;
    return world_
        .apply(SubmitJobs{.scope = user_scope(principal, tenant),
                          .request_id = uuid_of(++requests_),
                          .body_sha256 = "b",
                          .jobs = {job}})
        .uids.at(0);
  }
  Grant grant() { return world_.apply(simple_acquire(worker_, ++requests_, 1)).grants.at(0); }
  void complete(const Grant& grant) {
    world_.apply(StartAttempt{key_of(grant)});
    world_.apply(CompleteAttempt{.key = key_of(grant), .report_digest = "done"});
  }
  void pass(std::int64_t ms) {
    clock_.advance(ms);
    world_.run([](WriteContext& write) { write.queue.tick(write.now); });
  }
  Used used_by(const Account& account) {
    SqliteStore& store = world_.engine.store();
    Used used = store.jobs_of_account(account);
    used.gpu_ms = store.gpu_ms_of_account(account, first_usage_day(clock_.time.wall_ms));
    used.stored_bytes = store.bytes_of_account(account);
    return used;
  }
  Used ada() { return used_by(Account::of_principal(1)); }
  std::string fault() { return usage_fault(world_.engine.database()); }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
  QueueWorld world_{{.files = system_files(), .root = root_.path().string()},
                    clock_,
                    random_,
                    QueueOptions{.lease_ttl_ms = 5'000, .requeue_delay_ms = 30'000}};
  const RegisterWorker worker_ = simple_gpu_worker("w_1", 1, 4);
  std::uint64_t requests_ = 0;
};

// A job counts from its submission to its end, and its GPU from the grant to the end of the
// attempt. A tenant has the sum of its members.
TEST_F(Accounts, JobsAndGpusCountFromTheirBeginningToTheirEnd) {
  const std::string first = submit(1, "phonons");
  submit(2, "phonons");
  EXPECT_EQ(ada(), (Used{.unfinished_jobs = 1}));
  EXPECT_EQ(used_by(Account::of_tenant("phonons")).unfinished_jobs, 2);
  const Grant running = grant();
  ASSERT_EQ(running.job.uid, first);
  submit(3, "devices");
  EXPECT_EQ(ada(), (Used{.unfinished_jobs = 1, .running_gpus = 1, .reserved_gpu_ms = kHourMs}));
  EXPECT_EQ(fault(), "");
  clock_.advance(4'000);
  complete(running);
  EXPECT_EQ(ada(), (Used{.gpu_ms = 4'000}));
  EXPECT_EQ(used_by(Account::of_tenant("phonons")), (Used{.unfinished_jobs = 1, .gpu_ms = 4'000}));
  EXPECT_EQ(fault(), "");
}

// The time of an expired attempt is charged, and given back if its worker returns.
TEST_F(Accounts, AnAttemptThatComesBackIsChargedOnce) {
  submit(1, "phonons");
  const Grant expired = grant();
  world_.apply(StartAttempt{key_of(expired)});
  pass(6'000);
  EXPECT_EQ(ada(), (Used{.unfinished_jobs = 1, .gpu_ms = 6'000}));
  world_.apply(Heartbeat{.worker_id = worker_.worker.id,
                         .incarnation = worker_.worker.incarnation,
                         .attempts = {{.attempt_uid = expired.attempt.uid,
                                       .fence = expired.attempt.fence,
                                       .progress = ""}},
                         .devices = {}});
  EXPECT_EQ(ada(), (Used{.unfinished_jobs = 1, .running_gpus = 1, .reserved_gpu_ms = kHourMs}));
  clock_.advance(1'000);
  complete(expired);
  EXPECT_EQ(ada(), (Used{.gpu_ms = 7'000}));
  EXPECT_EQ(fault(), "");
}

// An attempt costs at most its time limit, whatever the wall clock does, and a job without a GPU
// costs no GPU time. After 30 days no time counts.
TEST_F(Accounts, TimeIsBoundedAndGoesAfterThirtyDays) {
  submit(1, "phonons", 2'000);
  const Grant running = grant();
  clock_.time.wall_ms += 400 * 24 * kHourMs;
  complete(running);
  EXPECT_EQ(ada(), (Used{.gpu_ms = 2'000}));
  clock_.time.wall_ms += 29 * 24 * kHourMs;
  EXPECT_EQ(ada().gpu_ms, 2'000);
  clock_.time.wall_ms += 24 * kHourMs;
  EXPECT_EQ(ada().gpu_ms, 0);
  const RegisterWorker cpus = simple_worker("w_2", 2, 1);
  world_.apply(cpus);
  submit(1, "phonons");
  const Grant on_cpu = world_.apply(simple_acquire(cpus, 999, 1)).grants.at(0);
  EXPECT_EQ(ada(), (Used{.unfinished_jobs = 1}));
  clock_.advance(1'000);
  complete(on_cpu);
  EXPECT_EQ(ada(), (Used{}));
}

// A principal holds what they sent, and the results and checkpoints of their jobs. A file counts
// once for each holder, until it is removed.
TEST_F(Accounts, StoredBytesAreThoseOfHeldBlobs) {
  const std::string sent = world_.put_blob("twelve bytes");
  const std::string result = world_.put_blob("a result");
  world_.run([&](WriteContext& write) {
    write.store.add_holder(sent, 1);
    write.store.add_holder(sent, 1);
    write.store.add_holder(sent, 2);
  });
  EXPECT_EQ(ada().stored_bytes, 12);
  submit(1, "phonons");
  const Grant running = grant();
  world_.apply(StartAttempt{key_of(running)});
  world_.apply(RecordCheckpoint{
      .key = key_of(running),
      .checkpoint = {.sequence = 1, .step = 1, .digest = result, .size_bytes = 8}});
  EXPECT_EQ(ada().stored_bytes, 20);
  world_.apply(CompleteAttempt{
      .key = key_of(running),
      .artifacts = {{.name = "again", .digest = result, .size_bytes = 8, .media_type = ""}},
      .report_digest = "done"});
  EXPECT_EQ(ada().stored_bytes, 20);
  EXPECT_EQ(fault(), "");
  world_.run([&](WriteContext& write) {
    write.store.set_blob_state(sent, BlobState::kDeleting);
    write.store.delete_blob(sent);
  });
  EXPECT_EQ(ada().stored_bytes, 8);
  EXPECT_EQ(used_by(Account::of_principal(2)).stored_bytes, 0);
  EXPECT_EQ(fault(), "");
}

// The recount finds totals that differ from the jobs.
TEST_F(Accounts, TheRecountFindsWrongTotals) {
  submit(1, "phonons");
  grant();
  ASSERT_EQ(fault(), "");
  Database& database = world_.engine.database();
  for (const char* column : {"unfinished_jobs", "running_gpus", "reserved_gpu_ms"}) {
    const std::string name = column;
    database.execute(("UPDATE usage_totals SET " + name + "=" + name + "+1").c_str());
    EXPECT_NE(fault(), "") << column;
    database.execute(("UPDATE usage_totals SET " + name + "=" + name + "-1").c_str());
  }
  database.execute("INSERT INTO stored_bytes VALUES (1, 5)");
  EXPECT_EQ(fault(), "stored bytes of 1: there are 0, and the total is 5");
}

}  // namespace
}  // namespace quasi::server::test
