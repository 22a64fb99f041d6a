// Tests the explanation of waiting jobs: it agrees with the grants, and each reason is told apart.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// A queue whose jobs are explained.
class Explained {
 public:
  explicit Explained(std::uint64_t seed) : random_(seed) {}

  void add_worker(const RegisterWorker& worker) {
    workers_.push_back(worker);
    world_.apply(worker);
  }
  std::string submit(const NewJob& job, const Scope& scope = Scope::everything()) {
    return world_
        .apply(SubmitJobs{
            .scope = scope, .request_id = uuid_of(++requests_), .body_sha256 = "b", .jobs = {job}})
        .uids.at(0);
  }
  /// Asks for a job with every slot of the worker, as the explanation assumes.
  std::vector<Grant> acquire(const RegisterWorker& worker) {
    AcquireLeases command{.worker_id = worker.worker.id,
                          .incarnation = worker.worker.incarnation,
                          .acquire_id = uuid_of(++requests_)};
    for (const DeviceStatus& status : worker.devices)
      for (std::int32_t i = 0; i < status.device.slots; ++i)
        command.slots.push_back({.device_id = status.device.id, .free_bytes = status.free_bytes});
    return world_.apply(command).grants;
  }
  Explanation why(const std::string& uid, const Scope& scope = Scope::everything()) {
    Explanation explanation;
    world_.run(
        [&](WriteContext& write) { explanation = write.queue.explain(scope, uid, write.now); });
    return explanation;
  }
  void change(const std::string& uid, ChangeTurns::Act act) {
    world_.apply(
        ChangeTurns{.request_id = {}, .body_sha256 = {}, .uids = {uid}, .act = act, .reason = {}});
  }
  void fail(const Grant& grant, FailureReason reason) {
    world_.apply(CompleteAttempt{.key = key_of(grant),
                                 .outcome = AttemptOutcome::kFailed,
                                 .artifacts = {},
                                 .summary_json = {},
                                 .failure = {.reason = reason, .message = "as told"},
                                 .usage = {},
                                 .report_digest = "r" + grant.attempt.uid});
  }
  std::uint64_t below(std::uint64_t n) { return random_.next() % n; }

  FakeClock clock_;
  SeededRandom random_;
  quasi::test::TemporaryDirectory root_;
  QueueWorld world_{{.files = system_files(), .root = root_.path()},
                    clock_,
                    random_,
                    {.lease_ttl_ms = 5'000, .retry_back_off_ms = 30'000}};
  std::vector<RegisterWorker> workers_;
  std::uint64_t requests_ = 0;
};

RegisterWorker worker_with_gpus(const std::string& id, std::uint64_t number, int gpus,
                                std::int64_t memory_bytes) {
  RegisterWorker worker = simple_worker(id, number, 1);
  worker.devices.clear();
  for (int i = 0; i < gpus; ++i)
    worker.devices.push_back({.device = {.id = "gpu" + std::to_string(i),
                                         .backend = Backend::kCuda,
                                         .model = "fake",
                                         .memory_bytes = memory_bytes,
                                         .slots = 1},
                              .free_bytes = memory_bytes});
  worker.worker.devices.clear();
  for (const DeviceStatus& status : worker.devices) worker.worker.devices.push_back(status.device);
  return worker;
}

NewJob random_job(Explained& world, int number) {
  NewJob job = simple_job("job" + std::to_string(number));
  job.row.kind = world.below(3) == 0 ? "thermal" : "test";
  job.row.gpus = static_cast<std::int32_t>(world.below(3));
  job.row.device = static_cast<Preference>(1 + (job.row.gpus == 0 ? world.below(3) : 0));
  if (world.below(2) == 0) job.row.memory_bytes = static_cast<std::int64_t>(world.below(30)) * kGiB;
  job.row.priority = static_cast<std::int32_t>(world.below(3)) - 1;
  if (world.below(6) == 0) job.row.not_before_ms = world.clock_.time.wall_ms + 1'000;
  return job;
}

// A job says that a worker gets it next if, and only if, the next request of that worker is granted
// it. Random fleets and queues are granted until no worker gets a job.
TEST(Explanation, NowIsSaidOfTheJobThatIsGrantedNext) {
  int grants = 0;
  int waits = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Explained world(seed);
    for (std::uint64_t i = 0; i < 1 + seed % 3; ++i) {
      const std::string id = "w_" + std::to_string(i);
      RegisterWorker worker =
          world.below(3) == 0
              ? simple_worker(id, i, 2)
              : worker_with_gpus(id, i, 1 + static_cast<int>(world.below(3)),
                                 (8 + static_cast<std::int64_t>(world.below(24))) * kGiB);
      if (world.below(2) == 0) worker.worker.kinds.emplace_back("thermal");
      world.add_worker(worker);
    }
    std::vector<std::string> jobs;
    for (int i = 0; i < 12; ++i) {
      // A job that no worker could ever hold is refused at once.
      try {
        jobs.push_back(world.submit(random_job(world, i)));
      } catch (const Refused& refused) {
        EXPECT_EQ(refused.reason, "UNSCHEDULABLE");
        continue;
      }
      if (world.below(6) == 0) world.change(jobs.back(), ChangeTurns::Act::kHold);
    }
    for (int round = 0; round < 20; ++round) {
      const RegisterWorker& worker = world.workers_[world.below(world.workers_.size())];
      std::vector<std::string> promised;
      for (const std::string& uid : jobs) {
        const Explanation explanation = world.why(uid);
        const auto& ids = explanation.worker_ids;
        EXPECT_EQ(explanation.reason == WaitReason::kNow, !ids.empty());
        if (std::find(ids.begin(), ids.end(), worker.worker.id) != ids.end())
          promised.push_back(uid);
        if (explanation.reason == WaitReason::kBusy) ++waits;
      }
      const auto granted = world.acquire(worker);
      ASSERT_LE(promised.size(), 1U);
      ASSERT_EQ(granted.empty(), promised.empty());
      if (granted.empty()) continue;
      EXPECT_EQ(granted.front().job.uid, promised.front());
      ++grants;
      if (world.below(2) == 0) world.fail(granted.front(), FailureReason::kNumerical);
    }
  }
  EXPECT_GT(grants, 100) << "the fleets granted too little to prove anything";
  EXPECT_GT(waits, 100) << "the fleets were never busy";
}

// Each reason is told by its own state of the queue.
TEST(Explanation, EveryReasonHasItsCause) {
  Explained world(1);
  const std::string job = world.submit(simple_job("a"));
  EXPECT_EQ(world.why(job).reason, WaitReason::kNoWorker);
  const RegisterWorker worker = simple_worker("w_1", 1, 1);
  world.add_worker(worker);
  EXPECT_EQ(world.why(job).reason, WaitReason::kNow);
  EXPECT_EQ(world.why(job).worker_ids, std::vector<std::string>{"w_1"});
  const std::string second = world.submit(simple_job("b"));
  EXPECT_EQ(world.why(second).reason, WaitReason::kBehind);

  NewJob on_gpu = simple_job("c");
  on_gpu.row.gpus = 1;
  const std::string unfit = world.submit(on_gpu);
  EXPECT_EQ(world.why(unfit).reason, WaitReason::kNothingFits);
  EXPECT_NE(world.why(unfit).message.find("no worker of pool default has registered a device"),
            std::string::npos);

  const Grant grant = world.acquire(worker).at(0);
  EXPECT_EQ(world.why(job).reason, WaitReason::kNotWaiting);
  const Explanation busy = world.why(second);
  EXPECT_EQ(busy.reason, WaitReason::kBusy);
  EXPECT_EQ(busy.blocking, std::vector<std::string>{job});
  EXPECT_EQ(busy.blocking_jobs, 1);
  EXPECT_EQ(busy.latest_ms, grant.attempt.granted_ms + grant.job.max_runtime_ms);

  world.fail(grant, FailureReason::kStorage);
  const Explanation back_off = world.why(job);
  EXPECT_EQ(back_off.reason, WaitReason::kBackOff);
  EXPECT_NEAR(static_cast<double>(back_off.earliest_ms - world.clock_.time.wall_ms), 30'000.0,
              6'000.0);
  // The wall clock does not move the end of a back-off, which is on the monotonic clock (I19).
  world.clock_.time.wall_ms += 3'600'000;
  EXPECT_EQ(world.why(job).earliest_ms, back_off.earliest_ms + 3'600'000);
  world.change(job, ChangeTurns::Act::kHold);
  EXPECT_EQ(world.why(job).reason, WaitReason::kHeld);

  NewJob later = simple_job("d");
  later.row.not_before_ms = world.clock_.time.wall_ms + 1'000;
  const Explanation early = world.why(world.submit(later));
  EXPECT_EQ(early.reason, WaitReason::kNotBefore);
  EXPECT_EQ(early.earliest_ms, later.row.not_before_ms);
  world.clock_.time.monotonic_ms += 5'001;
  EXPECT_EQ(world.why(second).reason, WaitReason::kNoWorker) << "the worker is silent";
}

// The jobs of others that hold the slots are counted and not named (I15).
TEST(Explanation, ForeignJobsAreCountedNotNamed) {
  Explained world(1);
  const Scope ada{.principal_id = 1, .tenant = "phonons"};
  const Scope cy{.principal_id = 2, .tenant = "devices"};
  const RegisterWorker worker = simple_worker("w_1", 1, 2);
  world.add_worker(worker);
  const std::string own = world.submit(simple_job("own"), ada);
  world.submit(simple_job("foreign"), cy);
  ASSERT_EQ(world.acquire(worker).size(), 2U);
  const std::string waiting = world.submit(simple_job("waiting"), ada);
  const Explanation explanation = world.why(waiting, ada);
  EXPECT_EQ(explanation.blocking, std::vector<std::string>{own});
  EXPECT_EQ(explanation.blocking_jobs, 2);
  EXPECT_EQ(world.why(waiting).blocking.size(), 2U);
  EXPECT_THROW(world.why(waiting, cy), Refused);
}

}  // namespace
}  // namespace quasi::server::test
