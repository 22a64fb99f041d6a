// Tests the orders of operators: a drain lets jobs end that fit its time and sends the others back
// to the queue, a device is cordoned, and a job is preempted at no cost of its own.

#include <gtest/gtest.h>

#include "tests/service/server/turns/turns_world.hpp"

namespace quasi::server::test {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

class Orders : public testing::Test {
 protected:
  Directive beat(const Grant& grant) {
    const RegisterWorker& worker = worker_of(grant);
    return world_.world_
        ->apply(Heartbeat{.worker_id = worker.worker.id,
                          .incarnation = worker.worker.incarnation,
                          .attempts = {{.attempt_uid = grant.attempt.uid,
                                        .fence = grant.attempt.fence,
                                        .progress = {}}},
                          .devices = {}})
        .directives.at(0);
  }
  const RegisterWorker& worker_of(const Grant& grant) {
    for (const RegisterWorker& worker : world_.workers_)
      if (worker.worker.id == grant.attempt.worker_id) return worker;
    throw std::logic_error("no worker");
  }
  ServiceOrdered drain(const std::string& worker, std::int64_t within_ms, bool end = false) {
    return world_.world_->apply(
        OrderService{.order = {.worker_id = worker,
                               .evicts = true,
                               .until_ms = world_.clock_.time.wall_ms + within_ms,
                               .by = "otto",
                               .reason = "new fan"},
                     .end = end});
  }
  void preempt(const std::string& uid) {
    world_.world_->apply(PreemptJobs{
        .request_id = {}, .body_sha256 = {}, .uids = {uid}, .by = "otto", .reason = "a talk"});
  }
  JobRow row_of(const std::string& uid) {
    return *world_.world_->engine.store().find_job(Scope::everything(), uid);
  }
  Grant run_job(const RegisterWorker& worker, std::int64_t max_runtime_ms) {
    world_.submit(Scope::everything(), gpu_job("job", 1, max_runtime_ms));
    const auto grants = world_.acquire(worker);
    EXPECT_EQ(grants.size(), 1U);
    world_.world_->apply(StartAttempt{key_of(grants.at(0))});
    return grants.at(0);
  }
  JobState release(const Grant& grant) {
    return world_.world_
        ->apply(ReleaseLease{.key = key_of(grant),
                             .reason = ReleaseReason::kDrain,
                             .message = "the worker is shutting down"})
        .state;
  }
  std::string last_message(const Grant& grant) {
    return world_.world_->engine.store().find_attempt(grant.attempt.uid)->release_message;
  }

  TurnsWorld world_{{.lease_ttl_ms = 5'000, .requeue_delay_ms = 30'000}};
};

// A worker with two jobs is drained within half an hour. The job with a limit of 20 minutes runs to
// its end. The job of ten hours writes a checkpoint and waits again, and its attempt is not
// counted.
TEST_F(Orders, ADrainLetsAJobEndThatFitsAndSendsTheOtherBack) {
  const RegisterWorker worker = world_.add_worker("w_1", 2);
  const Grant brief = run_job(worker, 20 * kMinuteMs);
  const Grant lengthy = run_job(worker, 10 * kHourMs);
  const ServiceOrdered ordered = drain("w_1", 30 * kMinuteMs);
  EXPECT_EQ(ordered.staying, 1);
  EXPECT_EQ(ordered.leaving, 1);
  EXPECT_EQ(beat(lengthy), Directive::kDrain);
  EXPECT_EQ(beat(brief), Directive::kCheckpointNow) << "it secures its work";
  EXPECT_EQ(beat(brief), Directive::kContinue) << "once";
  EXPECT_EQ(beat(lengthy), Directive::kDrain) << "the answer may have been lost";

  EXPECT_EQ(release(lengthy), JobState::kQueued);
  EXPECT_EQ(row_of(lengthy.job.uid).attempts, 0);
  EXPECT_EQ(last_message(lengthy), "drained by otto: new fan");
  EXPECT_TRUE(world_.acquire(worker).empty()) << "a drained worker gets no job";
  EXPECT_EQ(world_.why(lengthy.job.uid).reason, WaitReason::kNoWorker);

  world_.clock_.advance(19 * kMinuteMs);
  EXPECT_EQ(beat(brief), Directive::kContinue) << "the decision stays the same";
  world_.complete(brief);
  EXPECT_EQ(row_of(brief.job.uid).state, JobState::kSucceeded);

  drain("w_1", 0, true);
  EXPECT_EQ(world_.acquire(worker).size(), 1U) << "back in service";
}

// An order outlives the server and a new incarnation of the worker.
TEST_F(Orders, AnOrderOutlivesARestart) {
  const RegisterWorker worker = world_.add_worker("w_1", 1);
  const Grant grant = run_job(worker, kHourMs);
  drain("w_1", 0);
  world_.open();
  EXPECT_EQ(beat(grant), Directive::kDrain);
  EXPECT_EQ(release(grant), JobState::kQueued);
  EXPECT_TRUE(world_.acquire(worker).empty());
  const auto fleet = world_.world_->engine.queue().fleet(world_.clock_.now());
  EXPECT_TRUE(fleet.at(0).draining);
  EXPECT_EQ(fleet.at(0).closed, "drained by otto: new fan");
}

// A cordoned device takes no job; the other device of the worker does. Its own job goes on.
TEST_F(Orders, ACordonClosesOneDevice) {
  const RegisterWorker worker = world_.add_worker("w_1", 2);
  const Grant first = run_job(worker, kHourMs);
  const std::string device = first.attempt.device_ids.at(0);
  const OrderService cordon{.order = {.worker_id = "w_1", .device_id = device, .by = "otto"}};
  EXPECT_EQ(world_.world_->apply(cordon).staying, 1);
  EXPECT_EQ(beat(first), Directive::kCheckpointNow);
  EXPECT_EQ(beat(first), Directive::kContinue);
  world_.complete(first);
  const Grant second = run_job(worker, kHourMs);
  EXPECT_NE(second.attempt.device_ids.at(0), device);
  const std::string third = world_.submit(Scope::everything(), gpu_job("third", 1));
  EXPECT_TRUE(world_.acquire(worker).empty());
  const auto fleet = world_.world_->engine.queue().fleet(world_.clock_.now());
  for (const DeviceStatus& status : fleet.at(0).devices)
    EXPECT_EQ(status.state == DeviceState::kCordoned, status.device.id == device);

  // The order `evict` also makes the job of the device leave.
  OrderService evict{.order = {.worker_id = "w_1",
                               .device_id = second.attempt.device_ids.at(0),
                               .evicts = true,
                               .until_ms = world_.clock_.time.wall_ms,
                               .by = "otto"}};
  EXPECT_EQ(world_.world_->apply(evict).leaving, 1);
  EXPECT_EQ(beat(second), Directive::kDrain);
  world_.complete(second);
  evict.end = true;
  world_.world_->apply(evict);
  EXPECT_EQ(world_.acquire(worker).at(0).job.uid, third);
}

TEST_F(Orders, AnOrderNamesAKnownWorkerAndDevice) {
  const RegisterWorker worker = world_.add_worker("w_1", 1);
  const auto reason_of = [&](const ServiceOrder& order) -> std::string {
    try {
      world_.world_->apply(OrderService{.order = order});
    } catch (const Refused& refused) {
      return refused.reason;
    }
    return "obeyed";
  };
  EXPECT_EQ(reason_of({.worker_id = "w_9"}), "WORKER");
  EXPECT_EQ(reason_of({.worker_id = "w_1", .device_id = "gpu9"}), "DEVICE");
  RegisterWorker twin = simple_gpu_worker("w_2", 77, 1);
  twin.worker.name = "w_1";
  world_.world_->apply(twin);
  EXPECT_EQ(reason_of({.worker_id = "w_1"}), "obeyed") << "an id comes before a name";
  twin.worker.id = "w_3";
  twin.worker.name = "twin";
  world_.world_->apply(twin);
  twin.worker.id = "w_4";
  world_.world_->apply(twin);
  EXPECT_EQ(reason_of({.worker_id = "twin"}), "WRONG_STATE") << "two workers have the name";
}

// A preempted job writes a checkpoint and waits again behind the others, and neither its attempts
// nor its crashes grow, however its engine ends.
TEST_F(Orders, APreemptionCostsTheJobNothing) {
  const RegisterWorker worker = world_.add_worker("w_1", 1);
  Grant grant = run_job(worker, kHourMs);
  const std::string uid = grant.job.uid;
  const std::string other = world_.submit(Scope::everything(), gpu_job("other", 1));
  preempt(uid);
  preempt(uid);
  EXPECT_EQ(beat(grant), Directive::kDrain);
  EXPECT_EQ(release(grant), JobState::kQueued);
  EXPECT_EQ(last_message(grant), "preempted by otto: a talk");
  EXPECT_EQ(row_of(uid).attempts, 0);
  const auto next = world_.acquire(worker);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next.at(0).job.uid, other) << "the older job is not granted at once again";
  world_.complete(next.at(0));

  // More crashes than max_attempts and the limit of crashes together, each of a preempted attempt.
  for (int i = 0; i < 6; ++i) {
    world_.clock_.advance(2 * kHourMs);
    world_.world_->run([](WriteContext& write) { write.queue.tick(write.now); });
    world_.world_->apply(worker);
    const auto grants = world_.acquire(worker);
    ASSERT_EQ(grants.size(), 1U) << i;
    grant = grants.at(0);
    world_.world_->apply(StartAttempt{key_of(grant)});
    preempt(uid);
    const JobState state =
        world_.world_
            ->apply(CompleteAttempt{
                .key = key_of(grant),
                .outcome = AttemptOutcome::kFailed,
                .failure = {.reason = FailureReason::kChildCrashed, .message = "signal 11"},
                .report_digest = "r" + grant.attempt.uid})
            .state;
    EXPECT_EQ(state, JobState::kQueued) << i;
    EXPECT_EQ(row_of(uid).attempts, 0);
    EXPECT_EQ(row_of(uid).crashes, 0);
  }
}

// Only a job that a worker has is preempted, and a job that overran its limit still fails.
TEST_F(Orders, APreemptionIsOfARunningJob) {
  const RegisterWorker worker = world_.add_worker("w_1", 1);
  const std::string waiting = world_.submit(Scope::everything(), gpu_job("waits", 1));
  EXPECT_THROW(preempt(waiting), Refused);
  EXPECT_THROW(preempt("j_none"), Refused);
  const Grant grant = world_.acquire(worker).at(0);
  world_.world_->apply(StartAttempt{key_of(grant)});
  preempt(waiting);
  const JobState state =
      world_.world_
          ->apply(CompleteAttempt{.key = key_of(grant),
                                  .outcome = AttemptOutcome::kFailed,
                                  .failure = {.reason = FailureReason::kTimeLimit,
                                              .message = "ran longer than its limit"},
                                  .report_digest = "r"})
          .state;
  EXPECT_EQ(state, JobState::kFailed);
}

}  // namespace
}  // namespace quasi::server::test
