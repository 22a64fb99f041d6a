// Tests how jobs share GPUs: by their memory, as stated and as measured, and by the time that a
// worker has left. Instances of a partitioned GPU are devices of their own.

#include <gtest/gtest.h>

#include "server/queue/estimates/correction.hpp"
#include "tests/service/server/turns/turns_world.hpp"

namespace quasi::server::test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMinuteMs = 60'000;

class SharedGpu : public testing::Test {
 protected:
  /// A worker with one GPU of 80 GiB and two slots, of which the worker keeps nothing free.
  SharedGpu() {
    worker_ = simple_gpu_worker("w_1", 1, 2);
    worker_.worker.devices.at(0).memory_bytes = 80 * kGiB;
    worker_.devices.at(0).device.memory_bytes = 80 * kGiB;
    world_.workers_.push_back(worker_);
    world_.world_->apply(worker_);
  }
  std::string submit(std::int64_t memory_bytes, std::int64_t max_runtime_ms = kHourMs,
                     std::int64_t checkpoint_ms = 0) {
    NewJob job = gpu_job("job", 1, max_runtime_ms, memory_bytes);
    job.row.checkpoint_ms = checkpoint_ms;
    return world_.submit(Scope::everything(), job);
  }
  /// Asks with `n_slots` slots of the GPU, each with this free memory.
  std::vector<Grant> acquire(std::size_t n_slots, std::int64_t free_bytes,
                             std::optional<std::int64_t> time_left_ms = {}) {
    AcquireLeases command = simple_acquire(worker_, 1'000 + ++asked_, n_slots);
    for (FreeSlot& slot : command.slots) slot.free_bytes = free_bytes;
    command.time_left_ms = time_left_ms;
    auto grants = world_.world_->apply(command).grants;
    for (const Grant& grant : grants) world_.world_->apply(StartAttempt{key_of(grant)});
    return grants;
  }
  void measure(const Grant& grant, std::int64_t gpu_bytes) {
    world_.world_->apply(Heartbeat{.worker_id = "w_1",
                                   .incarnation = worker_.worker.incarnation,
                                   .attempts = {{.attempt_uid = grant.attempt.uid,
                                                 .fence = grant.attempt.fence,
                                                 .progress = {},
                                                 .gpu_bytes = gpu_bytes}},
                                   .devices = {}});
  }
  void complete(const Grant& grant, std::int64_t peak_gpu_bytes, double wall_seconds = 0.0) {
    world_.world_->apply(
        CompleteAttempt{.key = key_of(grant),
                        .usage = {.wall_seconds = wall_seconds, .peak_gpu_bytes = peak_gpu_bytes},
                        .report_digest = "done" + grant.attempt.uid});
  }

  TurnsWorld world_;
  RegisterWorker worker_;
  std::uint64_t asked_ = 0;
};

// Two jobs share a GPU if both fit, also when the worker offers both slots with all of the free
// memory. A third one waits for the memory, although a slot is free.
TEST_F(SharedGpu, JobsOfOneRequestShareTheMemory) {
  submit(50 * kGiB);
  submit(40 * kGiB);
  const auto first = acquire(2, 80 * kGiB);
  ASSERT_EQ(first.size(), 1U) << "90 GiB do not fit 80";
  EXPECT_EQ(first.at(0).attempt.reserved_bytes, 50 * kGiB);
  submit(30 * kGiB);
  const auto second = acquire(1, 80 * kGiB);
  ASSERT_EQ(second.size(), 1U) << "the engine of the first has taken nothing yet, 30 GiB are left";
  EXPECT_EQ(second.at(0).job.memory_bytes, 30 * kGiB);
}

// The free memory that the worker measures counts, and so does memory that a running job may still
// take.
TEST_F(SharedGpu, MeasuredMemoryDecidesBesideTheStatedOne) {
  submit(20 * kGiB);
  const Grant first = acquire(2, 80 * kGiB).at(0);
  submit(50 * kGiB);
  // Another program holds 15 GiB: 65 are free, and the first job may still take 20 of them.
  EXPECT_TRUE(acquire(1, 65 * kGiB).empty());
  measure(first, 19 * kGiB);
  EXPECT_TRUE(acquire(1, 46 * kGiB).empty()) << "1 GiB of growth, 45 for another";
  EXPECT_EQ(acquire(1, 61 * kGiB).size(), 1U) << "60 GiB for another";
}

// A job that takes more than it states leaves less to the others.
TEST_F(SharedGpu, AJobThatGrewIsCountedByItsMeasure) {
  submit(20 * kGiB);
  const Grant first = acquire(2, 80 * kGiB).at(0);
  measure(first, 45 * kGiB);
  submit(40 * kGiB);
  EXPECT_TRUE(acquire(1, 80 * kGiB).empty()) << "80 - 45 GiB are left, whatever is free now";
  submit(30 * kGiB);
  EXPECT_EQ(acquire(1, 80 * kGiB).size(), 1U);
}

// Two jobs that state 50 GiB each do not fit one GPU of 80 GiB. After jobs of
// their kind were measured at 30 GiB, both run on it at once.
TEST_F(SharedGpu, TwoJobsOnOneGpuByMeasuredMemory) {
  for (std::size_t i = 0; i < kLeastRatios; ++i) {
    submit(50 * kGiB);
    const auto alone = acquire(2, 80 * kGiB);
    ASSERT_EQ(alone.size(), 1U) << i;
    complete(alone.at(0), 30 * kGiB);
  }
  const std::string waiting = submit(50 * kGiB);
  submit(50 * kGiB);
  const Explanation why = world_.why(waiting);
  EXPECT_DOUBLE_EQ(why.memory_correction, 0.6);
  EXPECT_EQ(why.needed_bytes, 30 * kGiB);
  const auto both = acquire(2, 80 * kGiB);
  ASSERT_EQ(both.size(), 2U);
  for (const Grant& grant : both) EXPECT_EQ(grant.attempt.reserved_bytes, 30 * kGiB);
  world_.open();
  EXPECT_DOUBLE_EQ(world_.why(waiting).memory_correction, 0.6) << "it is kept over a restart";
}

// A correction above 1 keeps jobs from sharing. It does not keep a job from a GPU of its own whose
// memory it states.
TEST_F(SharedGpu, ALargeCorrectionLeavesAGpuOfItsOwn) {
  for (std::size_t i = 0; i < kLeastRatios; ++i) {
    submit(20 * kGiB);
    complete(acquire(2, 80 * kGiB).at(0), 36 * kGiB);
  }
  submit(60 * kGiB);
  const auto grants = acquire(2, 80 * kGiB);
  ASSERT_EQ(grants.size(), 1U) << "108 GiB by the correction, and the GPU for itself";
  submit(10 * kGiB);
  EXPECT_TRUE(acquire(1, 80 * kGiB).empty());
}

// Robust, bounded, and silent without enough measurements. The reference values are nearest-rank
// percentiles by hand.
TEST(Correction, IsABoundedPercentile) {
  EXPECT_EQ(correction_of({}, kMemoryBounds), 1.0);
  EXPECT_EQ(correction_of({9, 9, 9, 9}, kMemoryBounds), 1.0) << "too few";
  EXPECT_EQ(correction_of({0.6, 0.7, 0.8, 0.9, 1.1}, kMemoryBounds), 1.1);
  std::vector<double> ratios(39, 0.8);
  ratios.push_back(50.0);
  EXPECT_EQ(correction_of(ratios, kMemoryBounds), 0.8)
      << "the 38th of 40: one outlier does not move it";
  EXPECT_EQ(correction_of(std::vector<double>(5, 0.01), kMemoryBounds), 0.5);
  EXPECT_EQ(correction_of(std::vector<double>(5, 40.0), kMemoryBounds), 2.0);
  EXPECT_EQ(correction_of(std::vector<double>(5, 0.02), kTimeBounds), 0.02);
  EXPECT_EQ(correction_of(std::vector<double>(5, 1.01), kTimeBounds), 1.0);
}

TEST_F(SharedGpu, OldMeasurementsGiveWay) {
  world_.world_->run([](WriteContext& write) {
    constexpr Quantity kMemory = Quantity::kGpuMemory;
    for (int i = 0; i < 100; ++i) write.store.add_estimate_ratio(kMemory, "gw", "default", 2.0);
    write.store.add_estimate_ratio(Quantity::kTime, "gw", "default", 0.1);
    for (std::size_t i = 0; i < kKeptRatios; ++i)
      write.store.add_estimate_ratio(kMemory, "gw", "default", 0.7);
    write.store.add_estimate_ratio(kMemory, "gw", "other", 1.5);
    const auto kept = write.store.estimate_ratios();
    ASSERT_EQ(kept.size(), 3U);
    EXPECT_EQ(kept.at(0).ratios, std::vector<double>(kKeptRatios, 0.7));
    EXPECT_EQ(kept.at(1).ratios, std::vector<double>(1, 1.5));
    EXPECT_EQ(kept.at(2).ratios, std::vector<double>(1, 0.1));
    EXPECT_EQ(write.store.estimate_ratios_of(kMemory, "gw", "other").ratios, kept.at(1).ratios);
  });
}

// A worker whose time ends gets the job that fits this time and not the longer one. A job with
// checkpoints fits if two intervals between its checkpoints do.
TEST_F(SharedGpu, AWorkerGetsWhatFitsItsTime) {
  const std::string lengthy = submit(0, 10 * kHourMs);
  const std::string brief = submit(0, 30 * kMinuteMs);
  const auto grants = acquire(2, 80 * kGiB, 40 * kMinuteMs);
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants.at(0).job.uid, brief);
  const Explanation why = world_.why(lengthy);
  EXPECT_EQ(why.reason, WaitReason::kNothingFits);
  EXPECT_NE(why.message.find("may run 600 min, and at most 40 min are left"), std::string::npos)
      << why.message;
  const std::string careful = submit(0, 10 * kHourMs, 20 * kMinuteMs);
  const auto more = acquire(1, 80 * kGiB, 40 * kMinuteMs);
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more.at(0).job.uid, careful);
  complete(more.at(0), 0);
  submit(0, 10 * kHourMs, 21 * kMinuteMs);
  EXPECT_TRUE(acquire(1, 80 * kGiB, 40 * kMinuteMs).empty()) << "two checkpoints take 42 min";
  EXPECT_EQ(acquire(1, 80 * kGiB).size(), 1U) << "no end, no limit";
}

// The jobs that fit the time are found behind more jobs that do not than one look reads.
TEST_F(SharedGpu, AFittingJobIsFoundBehindManyOthers) {
  for (int i = 0; i < 40; ++i) submit(0, 10 * kHourMs);
  const std::string careful = submit(0, 10 * kHourMs, kMinuteMs);
  const std::string brief = submit(0, kMinuteMs);
  const auto grants = acquire(2, 80 * kGiB, 10 * kMinuteMs);
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants.at(0).job.uid, careful);
  EXPECT_EQ(grants.at(1).job.uid, brief);
}

// Jobs that state ten hours and take one fit a worker that has two hours left. Those who wait for
// such a job learn when it is expected to end, besides when it has to.
TEST_F(SharedGpu, TheTimeThatJobsTookCorrectsTheirLimits) {
  const auto run_one = [this](double wall_seconds) {
    submit(0, 10 * kHourMs);
    const auto grants = acquire(1, 80 * kGiB);
    ASSERT_EQ(grants.size(), 1U);
    complete(grants.at(0), 0, wall_seconds);
  };
  for (std::size_t i = 1; i < kLeastRatios; ++i) run_one(3'600.0);
  const std::string lengthy = submit(0, 10 * kHourMs);
  EXPECT_TRUE(acquire(1, 80 * kGiB, 2 * kHourMs).empty()) << "four jobs are too few to learn from";
  EXPECT_EQ(world_.why(lengthy).time_correction, 1.0);
  complete(acquire(1, 80 * kGiB).at(0), 0, 3'600.0);

  const std::string next = submit(0, 10 * kHourMs);
  EXPECT_TRUE(acquire(1, 80 * kGiB, 59 * kMinuteMs).empty());
  EXPECT_DOUBLE_EQ(world_.why(next).time_correction, 0.1);
  EXPECT_NE(world_.why(next).message.find("may run 600 min and is expected to take 60 min"),
            std::string::npos)
      << world_.why(next).message;
  const Grant granted = acquire(2, 80 * kGiB, 2 * kHourMs).at(0);
  EXPECT_EQ(granted.job.uid, next);
  submit(0, 10 * kHourMs);
  acquire(1, 80 * kGiB);
  const Explanation busy = world_.why(submit(0, 10 * kHourMs));
  EXPECT_EQ(busy.reason, WaitReason::kBusy);
  EXPECT_EQ(busy.expected_ms, granted.attempt.granted_ms + kHourMs);
  EXPECT_EQ(busy.latest_ms, granted.attempt.granted_ms + 10 * kHourMs);
  world_.open();
  EXPECT_DOUBLE_EQ(world_.why(next).time_correction, 0.1) << "it is kept over a restart";
}

// A job that reached its limit counts as one that needs it, and a second attempt teaches nothing:
// it may have gone on from a checkpoint.
TEST_F(SharedGpu, TimeIsLearnedFromWholeJobs) {
  for (std::size_t i = 0; i < kLeastRatios; ++i) {
    const std::string job = submit(0, 10 * kHourMs);
    const Grant first = acquire(1, 80 * kGiB).at(0);
    world_.world_->apply(ReleaseLease{.key = key_of(first), .message = "shutting down"});
    complete(acquire(1, 80 * kGiB).at(0), 0, 1.0);
    EXPECT_EQ(world_.why(job).time_correction, 1.0);
  }
  for (std::size_t i = 0; i < kLeastRatios; ++i) {
    submit(0, 10 * kHourMs);
    complete(acquire(1, 80 * kGiB).at(0), 0, 3'600.0);
  }
  const std::string over = submit(0, 10 * kHourMs);
  EXPECT_DOUBLE_EQ(world_.why(over).time_correction, 0.1);
  const Grant grant = acquire(1, 80 * kGiB).at(0);
  world_.world_->apply(CompleteAttempt{.key = key_of(grant),
                                       .outcome = AttemptOutcome::kFailed,
                                       .failure = {.reason = FailureReason::kTimeLimit},
                                       .report_digest = "limit"});
  EXPECT_EQ(world_.why(over).time_correction, 1.0) << "the 6th of 6 is the 95th percentile";
}

// Each MIG instance is a device with memory of its own. A job of two GPUs gets none of them, since
// a process can use one instance at most.
TEST(MigInstances, AreDevicesOfTheirOwn) {
  TurnsWorld world;
  RegisterWorker worker = simple_gpu_worker("w_1", 1, 1);
  worker.devices.clear();
  worker.worker.devices.clear();
  for (const auto& [id, gib] : std::map<std::string, std::int64_t>{{"MIG-1", 10}, {"MIG-2", 40}}) {
    DeviceStatus status{.device = {.id = id,
                                   .backend = Backend::kCuda,
                                   .model = "fake",
                                   .memory_bytes = gib * kGiB,
                                   .slots = 1},
                        .free_bytes = gib * kGiB};
    worker.devices.push_back(status);
    worker.worker.devices.push_back(status.device);
  }
  world.workers_.push_back(worker);
  world.world_->apply(worker);
  const auto [reason, message] = world.refused(Scope::everything(), {gpu_job("pair", 2)});
  EXPECT_EQ(reason, "UNSCHEDULABLE") << message;
  const std::string large = world.submit(Scope::everything(), gpu_job("l", 1, kHourMs, 30 * kGiB));
  const std::string small = world.submit(Scope::everything(), gpu_job("s", 1, kHourMs, 5 * kGiB));
  const auto grants = world.acquire(worker);
  ASSERT_EQ(grants.size(), 2U);
  for (const Grant& grant : grants)
    EXPECT_EQ(grant.attempt.device_ids.at(0), grant.job.uid == large ? "MIG-2" : "MIG-1");
  EXPECT_NE(large, small);
}

}  // namespace
}  // namespace quasi::server::test
