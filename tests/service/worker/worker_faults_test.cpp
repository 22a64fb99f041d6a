// Tests every failure of server, worker and engine by name, with real processes.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <regex>
#include <set>
#include <stdexcept>

#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {
namespace {

class WorkerFaults : public testing::Test {
 protected:
  explicit WorkerFaults(std::vector<std::string> server_flags = {})
      : service(std::move(server_flags)) {}
  void SetUp() override { service.start_server(); }
  void TearDown() override {
    if (HasFailure())
      std::cerr << service.server().output() << "--- worker\n" << service.worker_log("w") << '\n';
  }
  /// The engine of the worker's only attempt. @throws std::runtime_error if it has ended.
  pid_t engine() {
    const auto children = children_of(service.worker("w").pid());
    if (children.empty()) throw std::runtime_error("the engine has ended");
    return children.front();
  }
  v1::Job wait_running(const std::string& id) {
    return service.wait_state(id, v1::JOB_STATE_RUNNING);
  }

  /// A job of some seconds whose first attempt is disturbed while it runs; returns the ended job.
  /// If the attempt ended before the disturbance on a slow machine, a job of twice the length
  /// follows.
  v1::Job disturbed(const std::function<v1::JobSpec(double seconds)>& work,
                    const std::function<bool(const v1::Job&)>& ready,
                    const std::function<void(const std::string& id)>& disturb) {
    for (double seconds = 1.0; seconds < 100.0; seconds *= 2.0) {
      const std::string id = service.submit(work(seconds));
      service.wait(id, [&](const v1::Job& job) { return ready(job) || is_final(job.state()); });
      disturb(id);
      const v1::Job job = service.wait_end(id);
      if (job.attempt_history_size() != 1 || job.state() != v1::JOB_STATE_SUCCEEDED) return job;
    }
    throw std::runtime_error("no attempt was caught while it ran");
  }
  static bool runs(const v1::Job& job) { return job.state() == v1::JOB_STATE_RUNNING; }
  /// Forty steps with a checkpoint each.
  static v1::JobSpec forty_steps(double seconds) { return checkpointing(40, seconds / 20.0); }
  /// Checks where each of two attempts at forty steps began and ended.
  void expect_second_attempt_went_on(const v1::Job& job) {
    const std::string steps = service.artifact_text(job, "steps.txt");
    std::smatch found;
    ASSERT_TRUE(std::regex_match(
        steps, found, std::regex("attempt 1: 1\\.\\.(\\d+)\nattempt 2: (\\d+)\\.\\.40\n")))
        << steps;
    EXPECT_GE(std::stoi(found[1]), 3);
    EXPECT_EQ(std::stoi(found[2]), std::stoi(found[1]) + 1) << steps;
  }

  Service service;
};

/// Leases that end soon.
class ShortLeases : public WorkerFaults {
 protected:
  ShortLeases() : WorkerFaults({"--lease-ttl", "2"}) {}
};

/// Replaces the file atomically, because the daemon may read it at any time.
void replace_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path.string() + ".new") << text;
  std::filesystem::rename(path.string() + ".new", path);
}

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
  EXPECT_TRUE(
      wait_for([&] { return std::filesystem::is_empty(service.worker_state("w") / "attempts"); }));
}

// Names, decks and results are readable only by the user of the programs, whatever the umask of the
// caller.
TEST_F(WorkerFaults, FilesOfServerAndWorkerAreClosedToOthers) {
  service.start_worker("w");
  service.wait_end(service.submit(checkpointing(3, 0.01)));
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(service.directory())) {
    if (!entry.is_regular_file() || entry.path().parent_path() == service.directory()) continue;
    const auto open = entry.status().permissions() &
                      (std::filesystem::perms::group_all | std::filesystem::perms::others_all);
    EXPECT_EQ(open, std::filesystem::perms::none) << entry.path();
    ++seen;
  }
  EXPECT_GT(seen, 5) << "the database, logs and results were looked for in the wrong place";
}

TEST_F(WorkerFaults, TheLogArrives) {
  service.start_worker("w");
  const std::string id = service.submit(sleep_for(0.05));
  service.wait_end(id);
  EXPECT_EQ(service.log_of(id), "sleeping\n");
}

TEST_F(WorkerFaults, ChildKilledIsTriedAgain) {
  service.start_worker("w");
  const auto job = disturbed(sleep_for, runs, [&](const std::string&) {
    for (const pid_t child : children_of(service.worker("w").pid())) kill(child, SIGKILL);
  });
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).failure().reason(), v1::FAILURE_REASON_CHILD_CRASHED);
  EXPECT_EQ(job.attempt_history(0).failure().signal(), SIGKILL);
}

TEST_F(WorkerFaults, DaemonKilledTakesItsChildAlongAndTheJobGoesOn) {
  service.start_worker("w");
  const auto job = disturbed(sleep_for, runs, [&](const std::string&) {
    const auto children = children_of(service.worker("w").pid());
    service.kill_worker("w");
    for (const pid_t child : children)
      EXPECT_TRUE(wait_for([&] { return is_gone(child); })) << "the engine lives on";
    service.start_worker("w");
  });
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1U) << "a restart is not counted";
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).outcome(), v1::ATTEMPT_OUTCOME_RELEASED);
}

TEST_F(WorkerFaults, DaemonKilledWithACheckpointResumesFromIt) {
  service.start_worker("w");
  const auto job = disturbed(
      forty_steps, [](const v1::Job& running) { return running.checkpoint().step() >= 3; },
      [&](const std::string&) {
        service.kill_worker("w");
        service.start_worker("w");
      });
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_NE(job.summary_json().find("\"steps\":40"), std::string::npos);
  expect_second_attempt_went_on(job);
}

// I16: the loss of the server alone ends no attempt.
TEST_F(WorkerFaults, ServerKilledEndsNoAttempt) {
  service.start_worker("w", {"--slots", "2"});
  const std::string endless = service.submit(sleep_for(36'000));
  wait_running(endless);
  const pid_t child = engine();
  const std::string brief = service.submit(sleep_for(1.0));
  wait_for([&] { return service.get(brief).state() != v1::JOB_STATE_QUEUED; });
  service.kill_server();
  service.start_server();
  const auto ended = service.wait_end(brief);  // it ended once: before, during or after the restart
  EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ended.attempt_history_size(), 1);
  // A new job runs, so the daemon is connected again. The earlier attempt is unchanged.
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_FALSE(is_gone(child));
  const auto job = service.get(endless);
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job.attempt_history_size(), 1);
  service.cancel(endless);
  EXPECT_EQ(service.wait_end(endless).attempt_history_size(), 1);
}

// The daemon and its child are frozen past the lease. The job goes to another worker, and later
// reports of the first worker have no effect.
TEST_F(ShortLeases, LeaseExpiredWhileRunningAndALateComplete) {
  v1::Job job;
  for (double seconds = 0.5; job.attempt_history_size() < 2;
       seconds *= 2.0) {  // the attempt had already ended: repeat
    ASSERT_LT(seconds, 100.0) << job.DebugString();
    service.start_worker("w");
    const std::string id = service.submit(sleep_for(seconds));
    service.wait(id,
                 [](const v1::Job& running) { return runs(running) || is_final(running.state()); });
    service.worker("w").signal(SIGSTOP);
    service.start_worker("second");
    job = service.wait_end(id);
    if (job.attempt_history_size() < 2) service.kill_worker("second");
  }
  const std::uint64_t first_fence = job.attempt_history(0).fence();
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).outcome(), v1::ATTEMPT_OUTCOME_EXPIRED);
  EXPECT_EQ(job.attempt_history(1).worker_name(), "second");
  service.worker("w").signal(SIGCONT);
  const auto kept = service.worker_state("w") / "kept" / std::to_string(first_fence);
  EXPECT_TRUE(wait_for([&] { return std::filesystem::exists(kept); }))
      << "the fenced attempt was not put aside";
  const auto after = service.get(job.id());
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
  const std::string id = service.submit(sleep_for(36'000));
  wait_running(id);
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(WorkerFaults, CancelOfAStubbornChild) {
  service.start_worker("w");
  const std::string id = service.submit(hang(true));
  wait_running(id);
  const pid_t child = engine();
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(is_gone(child));
  // The slot is free again.
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
}

// At any moment, a cancelled job ends cancelled or has succeeded before.
TEST_F(WorkerFaults, CancelAtEveryPhase) {
  service.start_worker("w", {"--slots", "4"});
  std::vector<v1::JobSpec> specs(24, noop());
  const auto ids = service.submit(specs);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    // Each job is cancelled a little later in its life. The wait is for the job before it.
    if (i % 3 == 1)
      service.wait(ids[i], [](const v1::Job& job) { return job.state() != v1::JOB_STATE_QUEUED; });
    if (i % 3 == 2)
      service.wait(ids[i], [](const v1::Job& job) {
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
  auto spec = sleep_for(36'000);
  spec.mutable_max_runtime()->set_seconds(1);
  const auto job = service.wait_end(service.submit(spec));
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
  const auto job = disturbed(
      forty_steps, [](const v1::Job& running) { return running.checkpoint().step() >= 3; },
      [&](const std::string&) {
        service.worker("w").signal(SIGTERM);
        const auto status = service.worker("w").wait();
        ASSERT_TRUE(status) << "the drained worker did not leave";
        EXPECT_EQ(WEXITSTATUS(*status), 0);
        service.start_worker("w", {"--state-directory", service.worker_state("another").string(),
                                   "--name", "another"});
      });
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1U) << "a drain is not counted";
  ASSERT_EQ(job.attempt_history_size(), 2);
  EXPECT_EQ(job.attempt_history(0).outcome(), v1::ATTEMPT_OUTCOME_RELEASED);
  EXPECT_EQ(job.attempt_history(1).worker_name(), "another");
  expect_second_attempt_went_on(job);
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
  EXPECT_TRUE(service.worker("w").wait());
}

TEST_F(WorkerFaults, AFaultyDeviceGetsNoWork) {
  const auto file = service.directory() / "devices.toml";
  std::ofstream(file)
      << "[[device]]\nuuid = 'GPU-bad'\nfault = 'Xid 79'\n[[device]]\nuuid = 'GPU-good'\n";
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
  replace_file(file, "[[device]]\nuuid = 'GPU-0'\nlost = true\n");
  const auto status = service.worker("w").wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 75);
}

// Acknowledged work must remain reachable: a server without its directory ends and reports it.
TEST_F(WorkerFaults, AServerWhoseDirectoryIsMovedAwayEnds) {
  std::filesystem::rename(service.directory() / "data", service.directory() / "elsewhere");
  const auto status = service.server().wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 65) << service.server().output();
  EXPECT_NE(service.server().output().find("data_directory_gone"), std::string::npos)
      << service.server().output();
  std::filesystem::rename(service.directory() / "elsewhere", service.directory() / "data");
  service.start_server();
  service.start_worker("w");
  EXPECT_EQ(service.wait_end(service.submit(noop())).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(WorkerFaults, ASecondDaemonOnOneStateIsRefused) {
  service.start_worker("w");
  service.wait_end(service.submit(noop()));
  Program second("quasi-worker", {"--state-directory", service.worker_state("w").string()},
                 service.directory() / "second.log");
  const auto status = second.wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 73) << second.output();
}

}  // namespace
}  // namespace quasi::test
