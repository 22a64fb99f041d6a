// Tests the quotas of users and tenants: submissions and uploads over one are refused, and jobs
// over one wait.

#include <gtest/gtest.h>

#include "tests/service/server/turns/turns_world.hpp"

namespace quasi::server::test {
namespace {

const Scope kAda = user_scope(1, "phonons");
const Scope kBen = user_scope(2, "phonons");
const Scope kEve = user_scope(3, "devices");

// A call with more jobs than the quota leaves is refused as a whole, by the quota of the user or by
// that of the tenant. A job that ends makes room, and a restart forgets nothing.
TEST(Quotas, JobsThatWaitOrRunAreLimited) {
  TurnsWorld world{{.quotas = {.user = {.unfinished_jobs = 2}, .tenant = {.unfinished_jobs = 3}}}};
  const RegisterWorker worker = world.add_worker("w_1", 1);
  world.submit(kAda, gpu_job("a", 1));
  EXPECT_EQ(world.refused(kAda, {gpu_job("b", 1), gpu_job("c", 1)}),
            std::pair(std::string("QUOTA_QUEUED"),
                      std::string("jobs: 2 new and 1 that wait or run are more than your quota, 2; "
                                  "wait until some have ended, or ask an admin for more: quasi "
                                  "admin quota")));
  world.submit(kAda, gpu_job("b", 1));
  world.submit(kBen, gpu_job("d", 1));
  EXPECT_EQ(world.refused(kBen, {gpu_job("e", 1)}).second.substr(0, 70),
            "jobs: 1 new and 3 that wait or run are more than the quota of tenant p");
  world.open();
  EXPECT_EQ(world.refused(kBen, {gpu_job("e", 1)}).first, "QUOTA_QUEUED");
  world.submit(kEve, gpu_job("f", 1));
  const auto grants = world.acquire(worker);
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(world.account(Account::of_tenant("phonons")).used.unfinished_jobs, 3);
  world.complete(grants[0]);
  if (grants[0].job.tenant == "devices") world.complete(world.acquire(worker).at(0));
  world.submit(kBen, gpu_job("e", 1));
}

// Jobs over the quota of running GPUs wait, and the explanation says so. The other users' jobs run
// meanwhile. A job that asks for more than the quota is refused.
TEST(Quotas, RunningGpusAreLimited) {
  TurnsWorld world;
  const RegisterWorker worker = world.add_worker("w_1", 4);
  world.allow(Account::of_principal(1), {.running_gpus = 2});
  EXPECT_EQ(world.refused(kAda, {gpu_job("three", 3)}),
            std::pair(std::string("QUOTA_GPUS"),
                      std::string("jobs[0].spec.resources.gpus: is 3, and your quota is 2 running "
                                  "GPUs; ask for fewer, or ask an admin for more: quasi admin "
                                  "quota")));
  // The device of a job without a GPU of its own may be one.
  const std::string first = world.submit(kAda, gpu_job("a", 0));
  const std::string second = world.submit(kAda, gpu_job("b", 1));
  const std::string third = world.submit(kAda, gpu_job("c", 0));
  const std::string other = world.submit(kBen, gpu_job("d", 1));
  const auto grants = world.acquire(worker);
  ASSERT_EQ(grants.size(), 3U);
  for (const Grant& grant : grants) EXPECT_NE(grant.job.uid, third);
  EXPECT_EQ(world.account(Account::of_principal(1)).used.running_gpus, 2);
  const Explanation waits = world.why(third);
  EXPECT_EQ(waits.reason, WaitReason::kQuota);
  EXPECT_EQ(waits.message,
            "jobs of its owner run on 2 GPUs, and the quota is 2; it waits until one of them has "
            "ended");
  for (const Grant& grant : grants)
    if (grant.job.uid == first) world.complete(grant);
  EXPECT_EQ(world.why(third).reason, WaitReason::kNow);
  EXPECT_EQ(world.acquire(worker).at(0).job.uid, third);
}

// The quota of a tenant counts the GPUs of all its users together.
TEST(Quotas, RunningGpusOfATenantAreLimited) {
  TurnsWorld world;
  const RegisterWorker worker = world.add_worker("w_1", 4);
  world.allow(Account::of_tenant("phonons"), {.running_gpus = 2});
  EXPECT_EQ(world.refused(kAda, {gpu_job("three", 3)}).second.substr(0, 80),
            "jobs[0].spec.resources.gpus: is 3, and the quota of tenant phonons is 2 running ");
  const std::string first = world.submit(kAda, gpu_job("a", 1));
  world.submit(kBen, gpu_job("b", 1));
  const std::string third = world.submit(kBen, gpu_job("c", 1));
  world.submit(kEve, gpu_job("d", 1));
  const auto grants = world.acquire(worker);
  ASSERT_EQ(grants.size(), 3U);
  for (const Grant& grant : grants) EXPECT_NE(grant.job.uid, third);
  EXPECT_EQ(world.account(Account::of_tenant("phonons")).used.running_gpus, 2);
  EXPECT_EQ(world.why(third).message,
            "jobs of tenant phonons run on 2 GPUs, and the quota is 2; it waits until one of them "
            "has ended");
  for (const Grant& grant : grants)
    if (grant.job.uid == first) world.complete(grant);
  EXPECT_EQ(world.acquire(worker).at(0).job.uid, third);
}

// An expired attempt comes back only if the quota has room for it.
TEST(Quotas, AnAttemptThatComesBackKeepsTheQuota) {
  TurnsWorld world{{.lease_ttl_ms = 5'000,
                    .requeue_delay_ms = 3'600'000,
                    .quotas = {.user = {.running_gpus = 1}, .tenant = {}}}};
  const RegisterWorker worker = world.add_worker("w_1", 1);
  const RegisterWorker other = world.add_worker("w_2", 1);
  world.submit(kAda, gpu_job("a", 1));
  world.submit(kAda, gpu_job("b", 1));
  const Grant expired = world.acquire(worker).at(0);
  world.clock_.advance(6'000);
  world.world_->run([](WriteContext& write) { write.queue.tick(write.now); });
  ASSERT_EQ(world.acquire(other).size(), 1U);
  const auto answer =
      world.world_->apply(Heartbeat{.worker_id = "w_1",
                                    .incarnation = worker.worker.incarnation,
                                    .attempts = {{.attempt_uid = expired.attempt.uid,
                                                  .fence = expired.attempt.fence,
                                                  .progress = ""}},
                                    .devices = {}});
  EXPECT_EQ(answer.directives.at(0), Directive::kFenced);
  EXPECT_EQ(world.account(Account::of_principal(1)).used.running_gpus, 1);
}

// A job starts only if its time limit fits beside past use and the limits of running jobs, so the
// GPU-hours of 30 days never exceed the quota. After 30 days there is room again.
TEST(Quotas, GpuHoursAreLimited) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs,
                    .quotas = {.user = {.gpu_ms = 10 * kHourMs}, .tenant = {}}}};
  const RegisterWorker worker = world.add_worker("w_1", 4);
  EXPECT_EQ(world.refused(kAda, {gpu_job("long", 2, 6 * kHourMs)}),
            std::pair(std::string("QUOTA_GPU_HOURS"),
                      std::string("jobs[0].spec.max_runtime: 6 h on 2 GPUs are 12 GPU-hours, and "
                                  "your quota is 10 GPU-hours in 30 days; set a shorter limit, or "
                                  "ask an admin for more: quasi admin quota")));
  world.submit(kAda, gpu_job("a", 2, 3 * kHourMs));
  const std::string second = world.submit(kAda, gpu_job("b", 2, 3 * kHourMs));
  const auto grants = world.acquire(worker);
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(world.why(second).message,
            "jobs of its owner have 6 GPU-hours in 30 days with the time limits of running ones, "
            "its own limit adds 6, and the quota is 10; it waits until there is room");
  world.clock_.advance(3 * kHourMs);
  world.complete(grants[0]);
  EXPECT_EQ(world.account(Account::of_principal(1)).used.gpu_ms, 6 * kHourMs);
  EXPECT_TRUE(world.acquire(worker).empty());
  EXPECT_EQ(world.why(second).reason, WaitReason::kQuota);
  world.clock_.advance(30 * 24 * kHourMs);
  EXPECT_EQ(world.acquire(worker).at(0).job.uid, second);
}

// The quota of a tenant counts the GPU-hours of all its users together.
TEST(Quotas, GpuHoursOfATenantAreLimited) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  const RegisterWorker worker = world.add_worker("w_1", 4);
  world.allow(Account::of_tenant("phonons"), {.gpu_ms = 10 * kHourMs});
  EXPECT_EQ(world.refused(kAda, {gpu_job("long", 2, 6 * kHourMs)}).second.substr(0, 95),
            "jobs[0].spec.max_runtime: 6 h on 2 GPUs are 12 GPU-hours, and the quota of tenant "
            "phonons is 10");
  world.submit(kAda, gpu_job("a", 2, 3 * kHourMs));
  const std::string second = world.submit(kBen, gpu_job("b", 2, 3 * kHourMs));
  ASSERT_EQ(world.acquire(worker).size(), 1U);
  EXPECT_EQ(world.why(second).message,
            "jobs of tenant phonons have 6 GPU-hours in 30 days with the time limits of running "
            "ones, its own limit adds 6, and the quota is 10; it waits until there is room");
  const std::string other = world.submit(kEve, gpu_job("c", 2, 3 * kHourMs));
  EXPECT_EQ(world.acquire(worker).at(0).job.uid, other);
}

/// Asks for room. @return the reason and the text of a refusal, "" if there is room
std::string ask_for_bytes(TurnsWorld& world, const Scope& scope, std::int64_t bytes) {
  try {
    world.world_->run(
        [&](WriteContext& write) { write.queue.require_room_for_bytes(scope, bytes); });
  } catch (const Refused& refusal) {
    return refusal.reason + " " + refusal.what();
  }
  return {};
}

// Bytes over the quota of a user are refused, and so are jobs of a user above it.
TEST(Quotas, StoredBytesAreLimited) {
  TurnsWorld world{{.quotas = {.user = {.stored_bytes = 20}, .tenant = {}}}};
  const std::string digest = world.world_->put_blob("twelve bytes");
  world.world_->run([&](WriteContext& write) { write.store.add_holder(digest, 1); });
  EXPECT_EQ(ask_for_bytes(world, kAda, 8), "");
  EXPECT_EQ(ask_for_bytes(world, kAda, 9),
            "QUOTA_BYTES header.size_bytes: 9 new bytes and 12 stored ones are more than your "
            "quota, 20; delete jobs that have ended, or ask an admin for more: quasi admin quota");
  EXPECT_EQ(ask_for_bytes(world, kBen, 20), "");
  world.submit(kAda, gpu_job("a", 0));
  world.allow(Account::of_principal(1), {.stored_bytes = 11});
  EXPECT_EQ(world.refused(kAda, {gpu_job("b", 0)}).first, "QUOTA_BYTES");
}

// The quota of a tenant counts the bytes of all its users together. The tenant of a user is read
// from the principals of the database.
TEST(Quotas, StoredBytesOfATenantAreLimited) {
  TurnsWorld world;
  world.world_->engine.database().execute(
      "INSERT INTO principals (id, name, role, tenant, created_ms) VALUES "
      "(1, 'ada', 2, 'phonons', 1), (2, 'ben', 2, 'phonons', 1), (3, 'eve', 2, 'devices', 1)");
  world.allow(Account::of_tenant("phonons"), {.stored_bytes = 20});
  const std::string digest = world.world_->put_blob("twelve bytes");
  world.world_->run([&](WriteContext& write) { write.store.add_holder(digest, 1); });
  EXPECT_EQ(ask_for_bytes(world, kBen, 8), "");
  EXPECT_EQ(ask_for_bytes(world, kBen, 9).substr(0, 103),
            "QUOTA_BYTES header.size_bytes: 9 new bytes and 12 stored ones are more than the quota "
            "of tenant phonons");
  EXPECT_EQ(ask_for_bytes(world, kEve, 21), "");
  world.submit(kBen, gpu_job("a", 0));
  world.allow(Account::of_tenant("phonons"), {.stored_bytes = 11});
  EXPECT_EQ(world.refused(kBen, {gpu_job("b", 0)}).first, "QUOTA_BYTES");
  world.submit(kEve, gpu_job("c", 0));
}

// A value that was set for an account goes before the default, also after a restart.
TEST(Quotas, AnOwnValueGoesBeforeTheDefault) {
  TurnsWorld world{{.quotas = {.user = {.unfinished_jobs = 1}, .tenant = {}}}};
  world.allow(Account::of_principal(1), {.shares = 300, .unfinished_jobs = 2});
  world.open();
  const AccountView view = world.account(Account::of_principal(1));
  EXPECT_EQ(view.stored, (Allowance{.shares = 300, .unfinished_jobs = 2}));
  EXPECT_EQ(view.in_effect.unfinished_jobs, 2);
  EXPECT_EQ(world.account(Account::of_principal(2)).in_effect.unfinished_jobs, 1);
  world.submit(kAda, gpu_job("a", 1));
  world.submit(kAda, gpu_job("b", 1));
  world.submit(kBen, gpu_job("c", 1));
  EXPECT_EQ(world.refused(kBen, {gpu_job("d", 1)}).first, "QUOTA_QUEUED");
}

}  // namespace
}  // namespace quasi::server::test
