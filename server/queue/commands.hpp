#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/rows.hpp"
#include "server/queue/turns/accounts.hpp"

/// The commands of the queue and their answers, as plain values without the wire and without
/// threads.
namespace quasi::server {

struct SubmitJobs {
  Scope scope = Scope::everything();  ///< of the owner of the jobs
  std::string request_id;
  std::string body_sha256;
  std::vector<NewJob> jobs;  ///< the rows carry the request; the queue sets ids, states and times
  std::optional<JobSetRow> set = {};  ///< of the jobs of a sweep: its name and limits
};
struct Submitted {
  std::vector<std::string> uids;
  std::vector<std::string> reused;  ///< those that took the result of an equal job
  std::string set_uid;              ///< of a sweep
  bool replayed = false;
};

struct CancelJobs {
  Scope scope = Scope::everything();
  std::string request_id;  ///< may be empty
  std::string body_sha256;
  std::vector<std::string> uids;
  std::string reason;
  std::string set_uid = {};  ///< instead of uids: the jobs of this set that have not ended
};
struct Cancelled {
  std::vector<std::string> uids;
  std::vector<JobState> states;
  bool replayed = false;
};

/// Deletes jobs that have ended.
struct DeleteJobs {
  Scope scope = Scope::everything();
  std::string request_id;  ///< may be empty
  std::string body_sha256;
  std::vector<std::string> uids;
  std::string reason;
};
struct Deleted {
  bool replayed = false;
};

/// Changes the turns of jobs.
struct ChangeTurns {
  enum class Act : std::uint8_t {
    kHold,          ///< takes waiting jobs out of their queue
    kRelease,       ///< puts held jobs back
    kReprioritise,  ///< sets the priority of jobs that have not ended
  };
  Scope scope = Scope::everything();
  std::string request_id;  ///< may be empty
  std::string body_sha256;
  std::vector<std::string> uids;
  Act act = Act::kHold;
  std::string reason;
  std::int32_t priority = 0;  ///< the new one, for kReprioritise
  bool may_raise = false;     ///< the caller's role permits a higher priority than before
};
struct Turn {
  JobState state = JobState::kQueued;
  std::int32_t priority = 0;
};
struct TurnsChanged {
  std::vector<Turn> jobs;  ///< in the order of the request
  bool replayed = false;
};

/// Takes a worker, or one device of it, out of service, or puts it back.
struct OrderService {
  ServiceOrder order;  ///< its worker_id may be the name of a worker
  bool end = false;    ///< puts it back
};
struct ServiceOrdered {
  std::string worker_id;
  std::int32_t staying = 0;  ///< running jobs that go on to their end
  std::int32_t leaving = 0;  ///< running jobs that write a checkpoint and go back to the queue
};

/// Lets leased and running jobs write a checkpoint and go back to the queue.
struct PreemptJobs {
  Scope scope = Scope::everything();
  std::string request_id;  ///< may be empty
  std::string body_sha256;
  std::vector<std::string> uids;
  std::string by;  ///< name of the operator
  std::string reason;
};
struct Preempted {
  bool replayed = false;
};

/// Sets the shares and quotas of an account.
struct SetAllowance {
  Account account;
  Allowance allowance;
};
/// The account of a principal or a tenant, as views show it.
struct AccountView {
  Allowance stored;
  Allowance in_effect;
  Used used;
};

/// Names an attempt. Every call compares it with the job's current fence.
struct AttemptKey {
  std::string worker_id;
  std::string attempt_uid;
  std::int64_t fence = 0;
};

enum class Directive : std::uint8_t {  // numbers of quasi.v1.Directive
  kContinue = 1,
  kCancel = 2,
  kCheckpointNow = 3,
  kDrain = 4,
  kFenced = 5,
};

/// The numbers are those of quasi.v1.DeviceState.
enum class DeviceState : std::uint8_t {
  kUnsaid = 0,
  kReady = 1,
  kBusyForeign = 2,
  kQuarantined = 3,
  kLost = 4,
  kCordoned = 5,  ///< an operator took it out of service; workers never say so
};

/// A device as its worker last described it.
struct DeviceStatus {
  DeviceRow device;
  std::int64_t free_bytes = 0;
  DeviceState state = DeviceState::kReady;
  std::string state_reason;
  std::string closed = {};  ///< why an operator took it out of service; "": in service
  double utilization = 0;
  double temperature_c = 0;
  double power_watts = 0;
};

struct RegisterWorker {
  WorkerRow worker;
  std::vector<DeviceStatus> devices;
  std::vector<AttemptKey> salvage;
};
struct Registered {
  std::vector<Directive> salvage;  ///< in the order of the request
};

struct FreeSlot {
  std::string device_id;
  std::int64_t free_bytes = 0;  ///< 0: the value at registration holds
};
struct AcquireLeases {
  std::string worker_id;
  std::string incarnation;
  std::string acquire_id;
  std::vector<FreeSlot> slots;
  std::optional<std::int64_t> time_left_ms;
};
struct Grant {
  JobRow job;
  AttemptRow attempt;
  std::string spec;
  std::optional<CheckpointRow> checkpoint;
  std::vector<JobInput> made_inputs = {};  ///< inputs that other jobs made
};
struct Acquired {
  std::vector<Grant> grants;
};

struct AttemptProgress {
  std::string attempt_uid;
  std::int64_t fence = 0;
  std::string progress;        ///< serialised quasi.v1.Progress; empty: no new progress
  std::int64_t gpu_bytes = 0;  ///< most memory that it was measured to hold on one GPU; 0: unknown
};
struct Heartbeat {
  std::string worker_id;
  std::string incarnation;
  std::vector<AttemptProgress> attempts;
  std::vector<DeviceStatus> devices;
  bool draining = false;
};
struct HeartbeatAnswer {
  std::vector<Directive> directives;  ///< in the order of the request
};

struct StartAttempt {
  AttemptKey key;
  std::optional<IsolationInfo> isolation = {};
};

struct AppendLog {
  AttemptKey key;
  std::int64_t offset = 0;
  std::string data;
};
struct LogAppended {
  std::int64_t length = 0;
  bool full = false;
};

struct RecordCheckpoint {
  AttemptKey key;
  CheckpointRow checkpoint;
};

struct CompleteAttempt {
  AttemptKey key;
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;  ///< SUCCEEDED, FAILED or CANCELLED
  std::vector<ArtifactRow> artifacts;
  std::string summary_json;
  FailureInfo failure;
  UsageInfo usage;
  std::string report_digest;
};

/// The numbers are those of quasi.v1.ReleaseReason.
enum class ReleaseReason : std::uint8_t {
  kDrain = 1,
  kRestart = 2,
  kBusyForeign = 3,
  kStageTimeout = 4,
  kUnwanted = 5,
};
struct ReleaseLease {
  AttemptKey key;
  ReleaseReason reason = ReleaseReason::kDrain;
  std::string message;
};

struct JobAfter {
  JobState state = JobState::kQueued;
};

/// The workers that have registered with this process, in their present state.
struct WorkerStatus {
  WorkerRow worker;
  bool online = false;
  bool draining = false;
  std::string closed = {};  ///< why an operator took it out of service; "": in service
  std::vector<DeviceStatus> devices;
};

}  // namespace quasi::server
