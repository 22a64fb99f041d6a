// Server, worker and engine as real processes: each way in which one of them fails, by name.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {
namespace {

class WorkerFaults : public testing::Test {
 protected:
  void SetUp() override { service.start_server(); }
  void TearDown() override {
    if (HasFailure())
      std::cerr << service.server().output() << "--- worker\n" << service.worker_log("w") << '\n';
  }
  /// The engine of the worker's one attempt.
  pid_t engine() {
    std::vector<pid_t> children;
    EXPECT_TRUE(wait_for(
        [&] {
          children = children_of(service.worker("w").pid());
          return !children.empty();
        },
        within(10)));
    return children.empty() ? -1 : children.front();
  }
  v1::Job wait_running(const std::string& id) { return service.wait_state(id, v1::JOB_STATE_RUNNING); }

  Service service;
};

TEST_F(WorkerFaults, NoneAtAllLeavesResultLogAndManifest) {
  service.start_worker("w");
  const std::string id = service.submit(checkpointing(3, 0.01));
  const auto job = service.wait_end(id);
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  std::set<std::string> names;
  for (const auto& artifact : job.artifacts()) names.insert(artifact.name());
  EXPECT_EQ(names, (std::set<std::string>{"manifest.json", "steps.txt", "summary.json"}));
  EXPECT_NE(job.summary_json().find("\"steps\":3"), std::string::npos) << job.summary_json();
  EXPECT_EQ(job.attempt_history_size(), 1);
  EXPECT_GT(job.attempt_history(0).usage().wall_seconds(), 0.0);
  EXPECT_TRUE(wait_for(
      [&] { return std::filesystem::is_empty(service.worker_state("w") / "attempts"); }, within(5)));
}

TEST_F(WorkerFaults, TheLogArrives) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(0.05));
  service.wait_end(id);
  EXPECT_EQ(service.log_of(id), "sleeping\n");
}

TEST_F(WorkerFaults, ChildKilledIsTriedAgain) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(1.0));
  wait_running(id);
  kill(engine(), SIGKILL);
  const auto job = service.wait_end(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).failure().reason(), v1::FAILURE_REASON_CHILD_CRASHED);
  EXPECT_EQ(job.attempt_history(0).failure().signal(), SIGKILL);
}

TEST_F(WorkerFaults, DaemonKilledTakesItsChildAlongAndTheJobGoesOn) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(1.0));
  wait_running(id);
  const pid_t child = engine();
  service.kill_worker("w");
  EXPECT_TRUE(wait_for([&] { return kill(child, 0) != 0; }, within(5))) << "the engine lives on";
  service.start_worker("w");
  const auto job = service.wait_end(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1U) << "a restart is not counted";
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).outcome(), v1::ATTEMPT_OUTCOME_RELEASED);
}

TEST_F(WorkerFaults, DaemonKilledWithACheckpointResumesFromIt) {
  service.start_worker("w");
  const std::string id = service.submit(checkpointing(40, 0.05));
  service.wait(id, [](const v1::Job& job) { return job.checkpoint().step() >= 3; });
  service.kill_worker("w");
  service.start_worker("w");
  const auto job = service.wait_end(id);
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempt_history_size(), 2);
  EXPECT_NE(job.summary_json().find("\"steps\":40"), std::string::npos);
}

// I16: the loss of the server alone ends no attempt.
TEST_F(WorkerFaults, ServerKilledEndsNoAttempt) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(2.0));
  wait_running(id);
  const pid_t child = engine();
  service.kill_server();
  service.start_server();
  EXPECT_EQ(kill(child, 0), 0);
  const auto job = service.wait_end(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempt_history_size(), 1);
}

// The daemon is frozen past its lease, with its child: the job goes to another worker, and what the
// first one says afterwards has no effect.
TEST_F(WorkerFaults, LeaseExpiredWhileRunningAndALateComplete) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(0.5));
  wait_running(id);
  const std::uint64_t first_fence = service.get(id).attempt_history(0).fence();
  service.worker("w").signal(SIGSTOP);
  service.start_worker("second");
  const auto job = service.wait_end(id);
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).outcome(), v1::ATTEMPT_OUTCOME_EXPIRED);
  EXPECT_EQ(job.attempt_history(1).worker_name(), "second");
  service.worker("w").signal(SIGCONT);
  const auto kept = service.worker_state("w") / "kept" / std::to_string(first_fence);
  EXPECT_TRUE(wait_for([&] { return std::filesystem::exists(kept); }, within(20)))
      << "the fenced attempt was not put aside";
  const auto after = service.get(id);
  EXPECT_EQ(after.revision(), job.revision()) << "a fenced worker left a trace";
  EXPECT_EQ(after.artifacts_size(), job.artifacts_size());
}

TEST_F(WorkerFaults, CancelWhileQueued) {
  const std::string id = service.submit(noop());
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id).state(), v1::JOB_STATE_CANCELLED);
  service.start_worker("w");
  const std::string other = service.submit(noop());
  EXPECT_EQ(service.wait_end(other).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(service.get(id).attempt_history_size(), 0);
}

TEST_F(WorkerFaults, CancelWhileRunning) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(60));
  wait_running(id);
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id, 10).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(WorkerFaults, CancelOfAStubbornChild) {
  service.start_worker("w");
  const std::string id = service.submit(hang(true));
  wait_running(id);
  const pid_t child = engine();
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id, 15).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_NE(kill(child, 0), 0);
  // The slot is free again.
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
}

// Whatever the moment, a job that was cancelled ends cancelled, or succeeded before.
TEST_F(WorkerFaults, CancelAtEveryPhase) {
  service.start_worker("w", {"--slots", "4"});
  std::vector<v1::JobSpec> specs(24, noop());
  const auto ids = service.submit(specs);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    // Each job a little further on: the waiting is for the one before it.
    if (i % 3 == 1) service.wait(ids[i], [](const v1::Job& job) { return job.state() != v1::JOB_STATE_QUEUED; });
    if (i % 3 == 2) service.wait(ids[i], [](const v1::Job& job) {
      return job.state() == v1::JOB_STATE_RUNNING || is_final(job.state());
    });
    service.cancel(ids[i]);
  }
  for (const auto& id : ids) {
    const auto job = service.wait_end(id);
    EXPECT_TRUE(job.state() == v1::JOB_STATE_CANCELLED || job.state() == v1::JOB_STATE_SUCCEEDED);
    EXPECT_LE(job.attempt_history_size(), 1);
  }
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(WorkerFaults, TimeLimit) {
  service.start_worker("w");
  auto spec = sleep_for(60);
  spec.mutable_max_runtime()->set_seconds(1);
  const auto job = service.wait_end(service.submit(spec), 20);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().reason(), v1::FAILURE_REASON_TIME_LIMIT);
}

TEST_F(WorkerFaults, GarbageOnTheSocket) {
  service.start_worker("w");
  v1::JobSpec spec;
  spec.mutable_test()->mutable_garbage_ipc()->set_bytes(1000);
  spec.mutable_retry()->set_max_attempts(2);
  const auto job = service.wait_end(service.submit(spec));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().reason(), v1::FAILURE_REASON_PROTOCOL);
  EXPECT_EQ(job.attempts(), 2U);
}

struct ExitCase {
  int status;
  v1::FailureReason reason;
};

TEST_F(WorkerFaults, ExitStatusesBecomeReasons) {
  service.start_worker("w", {"--slots", "4"});
  const std::vector<ExitCase> cases{{10, v1::FAILURE_REASON_INVALID_INPUT},
                                    {11, v1::FAILURE_REASON_NUMERICAL},
                                    {1, v1::FAILURE_REASON_ENGINE_ERROR},
                                    {0, v1::FAILURE_REASON_PROTOCOL}};
  for (const auto& [status, reason] : cases) {
    v1::JobSpec spec;
    spec.mutable_test()->mutable_exit()->set_status(status);
    spec.mutable_retry()->set_max_attempts(1);
    const auto job = service.wait_end(service.submit(spec));
    EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(job.failure().reason(), reason) << "status " << status;
    EXPECT_EQ(job.failure().exit_status(), status);
  }
}

TEST_F(WorkerFaults, FlakyIsTriedUntilItSucceeds) {
  service.start_worker("w");
  v1::JobSpec spec;
  spec.mutable_test()->mutable_flaky()->set_failures(2);
  spec.mutable_test()->mutable_flaky()->set_status(15);
  const auto job = service.wait_end(service.submit(spec));
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempts(), 3U);
}

TEST_F(WorkerFaults, DrainReleasesAndTheJobGoesElsewhere) {
  service.start_worker("w");
  const std::string id = service.submit(checkpointing(30, 0.1));
  service.wait(id, [](const v1::Job& job) { return job.checkpoint().step() >= 1; });
  service.worker("w").signal(SIGTERM);
  const auto status = service.worker("w").wait(within(15));
  ASSERT_TRUE(status) << "the drained worker did not leave";
  EXPECT_EQ(WEXITSTATUS(*status), 0);
  service.start_worker("second");
  const auto job = service.wait_end(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1U) << "a drain is not counted";
}

TEST_F(WorkerFaults, ASecondSignalStopsAtOnce) {
  service.start_worker("w", {"--drain-timeout-s", "600"});
  const std::string id = service.submit(hang(true));
  wait_running(id);
  service.worker("w").signal(SIGTERM);
  service.wait(id, [&](const v1::Job&) {
    return service.worker_log("w").find("draining") != std::string::npos;
  });
  service.worker("w").signal(SIGTERM);
  EXPECT_TRUE(service.worker("w").wait(within(15)));
}

TEST_F(WorkerFaults, AFaultyDeviceGetsNoWork) {
  const auto file = service.directory() / "devices.toml";
  std::ofstream(file) << "[[device]]\nuuid = 'GPU-bad'\nfault = 'Xid 79'\n[[device]]\nuuid = 'GPU-good'\n";
  service.start_worker("w", {"--devices", "fake:" + file.string()});
  for (int i = 0; i < 3; ++i) {
    const auto job = service.wait_end(service.submit(noop()));
    ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
    EXPECT_EQ(job.attempt_history(0).device_ids(0), "GPU-good");
  }
}

TEST_F(WorkerFaults, ALostDriverEndsTheDaemonForItsSupervisorToRestart) {
  const auto file = service.directory() / "devices.toml";
  std::ofstream(file) << "[[device]]\nuuid = 'GPU-0'\n";
  service.start_worker("w", {"--devices", "fake:" + file.string()});
  ASSERT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
  std::ofstream(file) << "[[device]]\nuuid = 'GPU-0'\nlost = true\n";
  const auto status = service.worker("w").wait(within(20));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 75);
}

TEST_F(WorkerFaults, ASecondDaemonOnOneStateIsRefused) {
  service.start_worker("w");
  service.wait_end(service.submit(noop()));
  Program second("quasi-worker", {"--state-directory", service.worker_state("w").string()},
                 service.directory() / "second.log");
  const auto status = second.wait(within(20));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 73) << second.output();
}

}  // namespace
}  // namespace quasi::test
