#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/wire/sweeps/figures.hpp"
#include "server/queue/job_state.hpp"
#include "server/queue/retry.hpp"
#include "server/queue/scope.hpp"

/// The contents of the store as plain values. Times are milliseconds since 1970; they serve for
/// display and for not_before, and 0 means "not yet". Row ids are the store's own numbers; the wire
/// uses `uid`.
namespace quasi::server {

using RowId = std::int64_t;

/// The processor that a job requests. The numbers are those of quasi.v1.DevicePreference.
enum class Preference : std::uint8_t { kAuto = 1, kCpu = 2, kCuda = 3 };

/// The numbers are those of quasi.v1.CachePolicy.
enum class CachePolicy : std::uint8_t { kUse = 1, kRefresh = 2, kOff = 3 };

/// The numbers are those of quasi.v1.DeviceBackend.
enum class Backend : std::uint8_t { kCpu = 1, kCuda = 2 };

/// The properties of a job that decide which slots can take it. Jobs of equal placement form one
/// queue, so a claim reads only the heads of a few queues, however long they are.
struct Placement {
  std::string kind;
  Preference device = Preference::kAuto;
  std::int32_t gpus = 0;
  std::int32_t memory_class =
      0;  ///< floor(log2(bytes)) of the memory needed per GPU; 0: not stated

  bool operator==(const Placement&) const = default;
};

/// The store's key of the queue, e.g. "test/1/0/0".
std::string encode(const Placement& placement);
Placement decode_placement(std::string_view text);
std::int32_t memory_class_of(std::int64_t bytes);

struct FailureInfo {
  FailureReason reason = FailureReason::kNone;
  std::string message;
  std::optional<std::int32_t> exit_status;
  std::optional<std::int32_t> signal;

  bool operator==(const FailureInfo&) const = default;
};

struct JobRow {
  RowId id = 0;  ///< increases with submission
  std::string uid;
  std::string name;
  std::string kind;
  JobState state = JobState::kQueued;
  FailureInfo failure;
  std::int32_t priority = 0;
  std::string pool;
  Preference device = Preference::kAuto;
  std::int32_t gpus = 0;
  std::int64_t memory_bytes = 0;  ///< needed per GPU; raised after GPU_OOM
  std::int64_t max_runtime_ms = 0;
  std::int64_t not_before_ms = 0;
  bool ready = true;          ///< not_before has passed; only ready jobs are claimed
  std::int32_t attempts = 0;  ///< counted attempts
  std::int32_t max_attempts = 3;
  std::int32_t grants = 0;
  std::int32_t crashes = 0;
  std::int32_t gpu_ooms = 0;
  std::int32_t host_ooms = 0;
  bool resume = true;
  std::int32_t checkpoints_kept = 2;
  std::int64_t checkpoint_ms = 0;  ///< interval of its checkpoints; 0: it promises none
  std::int64_t fence = 0;          ///< fence of the newest grant
  std::optional<RowId> open_attempt;
  std::string avoid_device;  ///< device of the last GPU_FAULT: "worker/device"
  std::int64_t revision = 1;
  std::int64_t job_seq = 0;
  std::int64_t created_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  std::int64_t cancel_requested_ms = 0;
  std::int64_t owner_id = 0;       ///< principal who submitted it; 0: the owner of the server
  std::string tenant = "default";  ///< group of the owner at that time
  Visibility visibility = Visibility::kPrivate;
  std::string action;  ///< digest of what decides the result; empty: jobs do not share it
  CachePolicy cache = CachePolicy::kOff;
  std::optional<RowId> taken_from;  ///< job whose result it took
  std::int32_t unmet = 0;           ///< jobs that it still waits for
  std::optional<RowId> set_id;      ///< the set that it belongs to
  bool set_waits = false;           ///< as many jobs of its set run as may at a time

  Placement placement() const;
  bool operator==(const JobRow&) const = default;
};

/// Jobs of one action that share their results with each other.
struct SharedAction {
  std::string share;  ///< "tenant NAME" or "owner ID"
  std::string action;
};

/// A stop rule of a set of jobs, and how many jobs it was applied to.
struct StopRuleRow {
  wire::StopCondition condition;
  std::int64_t met = 0;      ///< jobs that met it
  std::int64_t lacking = 0;  ///< jobs that succeeded without a number of this name
};

/// The jobs of one sweep. A limit of 0 is none.
struct JobSetRow {
  RowId id = 0;
  std::string uid;
  std::string name;
  std::int64_t owner_id = 0;
  std::string tenant = "default";
  Visibility visibility = Visibility::kPrivate;
  std::int64_t created_ms = 0;
  std::int64_t max_concurrent = 0;
  std::int64_t stop_after_failures = 0;
  std::int64_t stopped_ms = 0;
  std::string stop_reason;  ///< why it stopped, as a sentence
  std::string axes;         ///< serialised quasi.v1.JobSet with the axes alone, opaque here
  std::vector<StopRuleRow> stop_rules;  ///< of a new set, and of views; else see stop_rules_of()
};

struct JobInput {
  std::string slot;
  std::string digest;
  std::int64_t size_bytes = 0;
};

/// Names a job by its uid, or by its place among the jobs of the same submission.
struct JobReference {
  std::string uid;        ///< "": the job at `index`
  std::size_t index = 0;  ///< below the place of the job that waits, so that there are no cycles

  auto operator<=>(const JobReference&) const = default;
};

/// The end of a job for which another one waits. The numbers are those of
/// quasi.v1.Dependency.Condition.
enum class Condition : std::uint8_t { kSuccess = 1, kFinished = 2 };

/// A job that another one waits for.
struct NewDependency {
  JobReference job;
  Condition condition = Condition::kSuccess;
  std::string field;  ///< of the submission, for refusals
};

/// An input that another job makes. The job waits for its success.
struct ArtifactInput {
  std::string slot;
  JobReference job;
  std::string artifact;  ///< its name among the artefacts of `job`
  std::string field;     ///< of the submission, for refusals
};

/// A job at its insertion: the row and the parts that never change.
struct NewJob {
  JobRow row;
  std::string spec;  ///< serialised JobSpec, opaque in this program
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<JobInput> inputs;
  std::vector<NewDependency> dependencies = {};
  std::vector<ArtifactInput> artifact_inputs = {};
};

/// The numbers are those of quasi.v1.AttemptOutcome.
enum class AttemptOutcome : std::uint8_t {
  kOpen = 0,
  kSucceeded = 1,
  kFailed = 2,
  kCancelled = 3,
  kReleased = 4,
  kExpired = 5,
};

struct UsageInfo {
  double wall_seconds = 0;
  double gpu_seconds = 0;
  std::int64_t peak_gpu_bytes = 0;
  std::int64_t peak_ram_bytes = 0;
  double energy_joules = 0;

  bool operator==(const UsageInfo&) const = default;
};

/// The walls around the engine of an attempt, as its worker reported them.
struct IsolationInfo {
  bool is_whole = false;
  std::string walls;  ///< one line for people

  bool operator==(const IsolationInfo&) const = default;
};

struct AttemptRow {
  RowId id = 0;
  std::string uid;
  RowId job_id = 0;
  std::int32_t number = 0;
  std::int64_t fence = 0;
  std::string worker_id;
  std::string incarnation;
  std::vector<std::string> device_ids;
  std::string acquire_id;
  std::int64_t granted_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  AttemptOutcome outcome = AttemptOutcome::kOpen;
  FailureInfo failure;
  std::string release_message;
  UsageInfo usage;
  std::int64_t log_bytes = 0;
  bool log_full = false;
  bool counted = true;          ///< is part of the job's counter
  bool new_checkpoint = false;  ///< recorded a checkpoint of its own
  std::string report_digest;    ///< SHA-256 of the final CompleteAttempt, without the ref
  JobState end_state = JobState::kQueued;  ///< state of the job right after the attempt ended
  std::optional<IsolationInfo> isolation;  ///< empty until the engine has started
  std::int32_t gpus = 0;                   ///< GPUs among its devices
  std::int64_t reserved_bytes = 0;         ///< memory that it got on each of its GPUs
  std::string preempted;  ///< who preempted it and why, as a sentence; "": nobody did

  bool operator==(const AttemptRow&) const = default;
};

struct ArtifactRow {
  std::string name;
  std::string digest;
  std::int64_t size_bytes = 0;
  std::string media_type;

  bool operator==(const ArtifactRow&) const = default;
};

struct CheckpointRow {
  std::int64_t sequence = 0;
  std::int64_t step = 0;
  std::string digest;
  std::int64_t size_bytes = 0;
  std::int64_t fence = 0;
  std::int64_t created_ms = 0;

  bool operator==(const CheckpointRow&) const = default;
};

enum class EventType : std::uint8_t {
  kState = 1,
  kProgress = 2,
  kLogGrown = 3,
  kCheckpoint = 4,
  kPriority = 5,
};

/// One line of a job's history.
struct EventRow {
  std::int64_t seq = 0;  ///< increases; set by the store
  RowId job_id = 0;
  std::int64_t job_seq = 0;  ///< of state events: 1, 2, … without gaps; otherwise 0
  std::int64_t time_ms = 0;
  EventType type = EventType::kState;
  std::optional<JobState> from;  ///< empty at submission
  JobState to = JobState::kQueued;
  FailureInfo failure;
  std::int32_t attempt = 0;
  std::string attempt_uid;
  std::int64_t fence = 0;
  std::string worker_id;
  std::string message;
  bool reinstated = false;
  std::int64_t not_before_ms = 0;
  std::string progress;        ///< of PROGRESS: serialised quasi.v1.Progress, opaque here
  std::int64_t log_bytes = 0;  ///< of LOG_GROWN
  CheckpointRow checkpoint;    ///< of CHECKPOINT
  std::int32_t old_priority = 0, new_priority = 0;  ///< of PRIORITY
};

struct DeviceRow {
  std::string id;
  Backend backend = Backend::kCpu;
  std::string model;
  std::int64_t memory_bytes = 0;
  std::int32_t slots = 0;
};

struct WorkerRow {
  std::string id;
  std::string incarnation;
  std::string name;
  std::string version;
  std::string pool;
  std::vector<std::string> kinds;
  std::vector<DeviceRow> devices;
  std::int64_t last_seen_ms = 0;
};

/// The order of an operator that keeps a worker, or one device of it, out of service.
struct ServiceOrder {
  std::string worker_id;
  std::string device_id;      ///< "": the whole worker
  bool evicts = false;        ///< running jobs leave, unless their time limit ends by `until_ms`
  std::int64_t until_ms = 0;  ///< wall clock
  std::int64_t since_ms = 0;
  std::string by;  ///< name of the operator
  std::string reason;

  bool operator==(const ServiceOrder&) const = default;
};

struct RequestRow {
  std::string method;
  std::string body_sha256;
  std::string response;
};

}  // namespace quasi::server
