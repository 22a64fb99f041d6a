#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/service/support/crashing_files.hpp"
#include "workers/daemon/supervisor.hpp"

namespace quasi::test {

class FakeClock : public Clock {
 public:
  MonotonicTime now() const override { return now_; }
  void set(MonotonicTime now) { now_ = now; }

 private:
  MonotonicTime now_ = MonotonicTime{} + std::chrono::hours(1);
};

class QuietLog : public WorkerLog {
 public:
  void event(Level, std::string_view name, const nlohmann::json& facts) override {
    lines.push_back(std::string(name) + " " + facts.dump());
  }
  std::vector<std::string> lines;
};

/// Work for the fake engine, by the name of the job: "noop", "steps" (five steps with a checkpoint
/// each, resumed), "invalid" (exit 10), "crash" (SIGSEGV), "hang" (ignores all but SIGKILL),
/// "silent" (dies after a checkpoint that it did not announce; resumed).
///
/// One machine: a server by the letter of the lease rules, engines that are scripts, files that
/// forget; everything moves one step at a time and in one order, so that a run with a crash at step
/// n is the same run up to step n.
class WorkerWorld {
 public:
  explicit WorkerWorld(int n_slots = 1);
  ~WorkerWorld();

  enum class JobState { kQueued, kLeased, kRunning, kCancelling, kSucceeded, kFailed, kCancelled };
  struct Job {
    std::string id;
    std::string work;
    JobState state = JobState::kQueued;
    std::uint64_t fence = 0;  ///< of the newest grant
    bool open = false;        ///< that grant's attempt is not over
    int grants = 0;
    int executions = 0;  ///< children that were started for it
    int successes = 0;   ///< completions that the server made visible
    v1::FailureReason reason = v1::FAILURE_REASON_UNSPECIFIED;
    std::vector<v1::Artifact> artifacts;
    v1::Checkpoint checkpoint;
    std::string log;
    std::string input;  ///< bytes of the input "deck"; "" for none
    MonotonicTime requeue_at{};
    std::vector<v1::ReleaseReason> releases;
  };

  Job& submit(const std::string& work, const std::string& input = "");
  Job& job(const std::string& id) { return jobs_.at(id); }
  void cancel(const std::string& id);

  /// Starts a daemon: a new incarnation on the files that are there.
  void start_daemon();
  /// The daemon is gone and its children with it; the files lose what `loss` says.
  void kill_daemon(Loss loss, std::mt19937_64& random);
  bool daemon_runs() const { return supervisor_ != nullptr; }
  Supervisor& supervisor() { return *supervisor_; }

  /// Moves until `done` holds; false if 100,000 steps were not enough.
  bool run_until(const std::function<bool()>& done);
  bool run_until_all_over();
  bool all_over() const;
  /// One event, or a step of time if none waits. Throws Crash at a crash point.
  void step();
  void advance(Milliseconds by) { clock.set(clock.now() + by); }

  FakeClock clock;
  CrashPoints points;
  CrashingFiles files{points};
  QuietLog log;
  EngineSettings engine;
  bool server_reachable = true;
  bool lose_next_grants = false;  ///< the next answer with grants is lost on its way
  /// How the next calls with log, checkpoint or its bytes end: the connection dies under them.
  std::deque<grpc::StatusCode> dying_connections;
  Milliseconds lease_ttl{2'000};
  std::string scratch_shortage;  ///< of the daemon's disk
  v1::DeviceState shown_state =
      v1::DEVICE_STATE_UNSPECIFIED;  ///< of the device, in the newest heartbeat
  std::string shown_reason;
  Milliseconds heartbeat_limit{0};      ///< of the newest heartbeat
  bool strays_outlive_sigkill = false;  ///< engines of a daemon that was killed
  std::vector<std::pair<std::int64_t, Milliseconds>> stray_looks;  ///< process id, patience
  std::vector<std::string> violations;  ///< of the rules that the world watches
  int fenced_answers = 0;

 private:
  class Link;
  class Blobs;
  class Later;
  class Engines;
  class Child;
  struct Daemon;

  static grpc::Status refused(grpc::StatusCode code, std::string_view reason,
                              std::map<std::string, std::string> metadata = {});
  static grpc::Status fenced();
  void expire();
  void requeue(Job& job);
  bool stands(const v1::AttemptRef& ref, Job** job);
  void reopen(Job& job, const std::string& incarnation);
  void grant(const v1::AcquireLeasesRequest& request, v1::AcquireLeasesResponse& response);
  grpc::Status complete(const v1::CompleteAttemptRequest& request);
  bool current(const v1::AttemptRef& ref, Job** job);
  /// OK where the connection holds.
  grpc::Status take_connection();
  std::optional<MonotonicTime> next_server_event() const;

  std::map<std::string, Job> jobs_;
  std::map<std::string, std::string> blobs_;  ///< at the server, by digest
  std::map<std::uint64_t, MonotonicTime> leases_;
  std::map<std::uint64_t, std::string> lease_incarnation_;
  std::map<std::string, std::vector<std::uint64_t>> acquires_;
  std::set<std::uint64_t> expired_;
  std::map<std::uint64_t, std::string> logs_;
  std::map<std::uint64_t, std::string> completed_;  ///< what was accepted, by fence
  std::uint64_t next_fence_ = 1;
  int incarnation_ = 0;
  int uuids_ = 0;
  int n_slots_;
  std::deque<std::function<void()>> events_;
  std::vector<Child*> children_;
  std::unique_ptr<DeviceSource> devices_;
  std::unique_ptr<Daemon> daemon_;
  Supervisor* supervisor_ = nullptr;
};

}  // namespace quasi::test
