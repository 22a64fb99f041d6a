#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

/// A machine with one daemon, a server that follows the lease rules literally, engines that are
/// scripts, and files that lose unsynced bytes. One step moves one part, always in one order. Two
/// runs are therefore equal up to the step at which one of them crashes.
///
/// A job's work names the script of its engine:
///   "noop"     ends with a result;
///   "steps"    takes five steps with a checkpoint each, and resumes;
///   "invalid"  exits with status 10;
///   "crash"    ends by SIGSEGV;
///   "hang"     ignores every signal but SIGKILL;
///   "silent"   dies after a checkpoint that it did not announce, and resumes.
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
    bool open = false;        ///< the attempt of that grant has not ended
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

  /// Starts a daemon as a new incarnation on the present files.
  void start_daemon();
  /// Ends the daemon and its children at once; the files lose bytes by the model `loss`.
  void kill_daemon(Loss loss, std::mt19937_64& random);
  bool daemon_runs() const { return supervisor_ != nullptr; }
  Supervisor& supervisor() { return *supervisor_; }

  /// Steps until `done` holds; false after 100,000 steps.
  bool run_until(const std::function<bool()>& done);
  bool run_until_all_over();
  bool all_over() const;
  /// Runs one event, or moves the clock if none waits. Throws Crash at a crash point.
  void step();
  void advance(Milliseconds by) { clock.set(clock.now() + by); }

  FakeClock clock;
  CrashPoints points;
  CrashingFiles files{points};
  QuietLog log;
  EngineSettings engine;
  bool server_reachable = true;
  bool lose_next_grants = false;  ///< the next answer with grants does not arrive
  /// Statuses of the next calls with a log, a checkpoint or its bytes, whose connections die.
  std::deque<grpc::StatusCode> dying_connections;
  Milliseconds lease_ttl{2'000};
  std::string scratch_shortage;                ///< of the daemon's disk
  std::optional<Milliseconds> time_left;       ///< of the next daemon, until it drains
  Milliseconds idle_timeout{0};                ///< of the next daemon
  std::optional<Milliseconds> told_time_left;  ///< by the newest poll
  bool device_is_gpu = false;                  ///< The next daemon tests its device.
  std::string device_trouble;                  ///< found by self-tests; "": the device is sound
  Milliseconds self_test_interval{0};          ///< of the next daemon
  /// State of the device in the newest heartbeat, and its reason.
  v1::DeviceState shown_state = v1::DEVICE_STATE_UNSPECIFIED;
  std::string shown_reason;
  Milliseconds heartbeat_limit{0};      ///< time limit of the newest heartbeat
  bool strays_outlive_sigkill = false;  ///< engines of a killed daemon do not die
  std::vector<std::pair<std::int64_t, Milliseconds>> stray_looks;  ///< process id, patience
  std::vector<std::string> violations;                             ///< violated rules, as sentences
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
  /// Status of the connection of this call: OK, or the next of `dying_connections`.
  grpc::Status take_connection();
  std::optional<MonotonicTime> next_server_event() const;

  std::map<std::string, Job> jobs_;
  std::map<std::string, std::string> blobs_;  ///< at the server, by digest
  std::map<std::uint64_t, MonotonicTime> leases_;
  std::map<std::uint64_t, std::string> lease_incarnation_;
  std::map<std::string, std::vector<std::uint64_t>> acquires_;
  std::set<std::uint64_t> expired_;
  std::map<std::uint64_t, std::string> logs_;
  std::map<std::uint64_t, std::string> completed_;  ///< accepted reports, by fence
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
