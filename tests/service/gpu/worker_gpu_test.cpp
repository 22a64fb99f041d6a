// Tests a worker on a machine with a real GPU: errors of the device, memory that runs out, and
// another program that holds the memory. The engine is troubled_engine (troubled_work.cpp). The
// last GPU takes the jobs, the others are taken out of service. Machines with no GPU skip these
// tests.

#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "quasi/v1/admin_service.grpc.pb.h"
#include "tests/service/support/deck_jobs.hpp"
#include "workers/backend/device/device.hpp"

namespace quasi::test {
namespace {

/// How often a word stands in a text.
int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// Faults in a row after which the worker quarantines a device.
constexpr int kFaults = 3;

class WorkerGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    service.start_server();
    start_worker(service, "w");
  }
  void TearDown() override {
    if (HasFailure())
      std::cerr << service.server().output() << "--- worker\n" << service.worker_log("w") << '\n';
  }

  /// Starts a worker and returns once the last of its GPUs alone takes jobs.
  static void start_worker(Service& service, const std::string& name) {
    service.start_worker(
        name, {"--devices", "nvml", "--engine", Program::path_of("troubled_engine").string()});
    wait_for([&] { return worker_of(service).devices_size() > 0; });
    const v1::Worker worker = worker_of(service);
    const auto admin = v1::AdminService::NewStub(service.channel());
    for (int i = 0; i + 1 < worker.devices_size(); ++i) {
      grpc::ClientContext context;
      v1::CordonDeviceRequest request;
      v1::CordonDeviceResponse response;
      request.set_worker(worker.id());
      request.set_device(worker.devices(i).id());
      const auto status = admin->CordonDevice(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }
  /// The only worker as the server shows it; without devices before it has registered.
  static v1::Worker worker_of(Service& service) {
    grpc::ClientContext context;
    v1::ListPoolsResponse pools;
    const auto status = service.jobs().ListPools(&context, {}, &pools);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (pools.pools_size() == 0 || pools.pools(0).workers_size() == 0) return {};
    return pools.pools(0).workers(0);
  }

  /// Work of one attempt that ends with `status`, which selects the trouble.
  static v1::JobSpec trouble(int status) {
    v1::JobSpec spec;
    spec.mutable_test()->mutable_exit()->set_status(status);
    spec.mutable_retry()->set_max_attempts(1);
    return spec;
  }

  /// Runs four phonons of silicon on the GPU. The device does the work that Quasi exists for.
  void expect_a_real_job_succeeds() {
    const v1::Job job = service.wait_end(service.submit(real_job()));
    EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.failure().ShortDebugString();
    ASSERT_EQ(job.attempt_history_size(), 1);
    EXPECT_EQ(job.attempt_history(0).device_ids(0).rfind("GPU-", 0), 0U)
        << job.attempt_history(0).device_ids(0);
    EXPECT_NE(artifact(job, "summary.json").find("\"device\": \"cuda:0\""), std::string::npos);
  }
  v1::JobSpec real_job() {
    v1::JobSpec spec = silicon_4ph(service, "4", "0.3");
    spec.mutable_thermal()->set_device(v1::DEVICE_PREFERENCE_CUDA);
    return spec;
  }
  std::string artifact(const v1::Job& job, const std::string& name) {
    return service.artifact_text(job, name);
  }

  /// The device that takes the jobs, as the server shows it.
  v1::Device device() {
    const v1::Worker worker = worker_of(service);
    return worker.devices(worker.devices_size() - 1);
  }
  /// Waits until the server shows the state of the device, at most two minutes.
  void wait_device(v1::DeviceState state) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (device().state() != state && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(device().state(), state) << device().ShortDebugString();
  }

  /// Leases of 12 s, so that the worker reports its devices every few seconds.
  Service service{{"--lease-ttl", "12"}};
};

// CUDA keeps the error of a kernel until the process ends, so the attempt has to end with it.
TEST_F(WorkerGpu, AnErrorOfAKernelEndsOneAttemptAndTheNextJobSucceeds) {
  const v1::Job job = service.wait_end(service.submit(trouble(13)));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().reason(), v1::FAILURE_REASON_GPU_FAULT);
  EXPECT_NE(job.failure().message().find("illegal memory access"), std::string::npos)
      << job.failure().message();
  EXPECT_EQ(device().state(), v1::DEVICE_STATE_READY) << "one fault is no quarantine";
  expect_a_real_job_succeeds();
}

TEST_F(WorkerGpu, MemoryThatRunsOutIsNamedAndTheNextJobSucceeds) {
  const v1::Job job = service.wait_end(service.submit(trouble(12)));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().reason(), v1::FAILURE_REASON_GPU_OOM);
  EXPECT_NE(job.failure().message().find("out of memory"), std::string::npos)
      << job.failure().message();
  EXPECT_EQ(device().state(), v1::DEVICE_STATE_READY);
  expect_a_real_job_succeeds();
}

// The worker tests a quarantined device each minute. The test passes, since the GPU is sound.
TEST_F(WorkerGpu, ThreeErrorsInARowQuarantineItAndASelfTestHealsIt) {
  for (int i = 0; i < kFaults; ++i)
    EXPECT_EQ(service.wait_end(service.submit(trouble(13))).failure().reason(),
              v1::FAILURE_REASON_GPU_FAULT);
  wait_device(v1::DEVICE_STATE_QUARANTINED);
  EXPECT_NE(device().state_reason().find("3 device faults in a row"), std::string::npos)
      << device().state_reason();
  const std::string next = service.submit(real_job());
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(service.get(next).state(), v1::JOB_STATE_QUEUED) << "a quarantined device takes no job";
  const v1::Job job = service.wait(
      next, [](const v1::Job& view) { return is_final(view.state()); }, 120.0);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.failure().ShortDebugString();
  wait_device(v1::DEVICE_STATE_READY);
}

// The worker of another service holds all but 8 GiB of the device. A job that asks for 16 GiB waits
// without a start, one that asks for none runs beside it, and the first runs once the memory is
// free.
TEST_F(WorkerGpu, AJobWaitsWhileAnotherProgramHoldsTheMemory) {
  Service other;
  other.start_server();
  start_worker(other, "other");
  const std::string holder = other.submit(sleep_for(600.0));
  other.wait_state(holder, v1::JOB_STATE_RUNNING);
  const auto few_bytes = std::uint64_t{9} << 30;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (device().free_bytes() > few_bytes && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_LE(device().free_bytes(), few_bytes) << "the worker reports the memory of others";

  v1::JobSpec large = real_job();
  large.mutable_resources()->set_gpus(1);
  large.mutable_resources()->set_gpu_mem_bytes(std::uint64_t{16} << 30);
  const std::string waiting = service.submit(large);
  expect_a_real_job_succeeds();
  EXPECT_FALSE(is_final(service.get(waiting).state()));
  EXPECT_EQ(count(service.worker_log("w"), "engine_started"), 1) << "the small job's alone";
  other.cancel(holder);
  other.wait_end(holder);
  const v1::Job job = service.wait_end(waiting);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.failure().ShortDebugString();
  EXPECT_EQ(count(service.worker_log("w"), "engine_started"), 2);
}

}  // namespace
}  // namespace quasi::test
