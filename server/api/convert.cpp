#include "server/api/convert.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "proto/wire/action/action.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::server {

google::protobuf::Timestamp to_timestamp(std::int64_t milliseconds) {
  google::protobuf::Timestamp time;
  time.set_seconds(milliseconds / 1000);
  time.set_nanos(static_cast<std::int32_t>(milliseconds % 1000) * 1'000'000);
  return time;
}

google::protobuf::Duration to_duration(std::int64_t milliseconds) {
  google::protobuf::Duration duration;
  duration.set_seconds(milliseconds / 1000);
  duration.set_nanos(static_cast<std::int32_t>(milliseconds % 1000) * 1'000'000);
  return duration;
}

std::int64_t to_milliseconds(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1000 + time.nanos() / 1'000'000;
}

std::int64_t to_milliseconds(const google::protobuf::Duration& duration) {
  return duration.seconds() * 1000 + (duration.nanos() + 999'999) / 1'000'000;
}

void add_scopes(const TokenScopes& scopes, google::protobuf::RepeatedField<int>& numbers) {
  for (const TokenScope scope : scopes.list()) numbers.Add(static_cast<int>(scope));
}

namespace {

template <class Reference>
JobReference to_reference(const Reference& reference) {
  return {.uid = reference.job_id(), .index = reference.index()};
}

/// Adds the jobs that a job waits for.
void add_dependencies(const v1::JobSpec& spec, const std::string& path, NewJob& job) {
  for (int i = 0; i < spec.depends_on_size(); ++i) {
    const v1::Dependency& dependency = spec.depends_on(i);
    const bool is_finished = dependency.condition() == v1::Dependency::CONDITION_FINISHED;
    job.dependencies.push_back(
        {.job = to_reference(dependency),
         .condition = is_finished ? Condition::kFinished : Condition::kSuccess,
         .field = path + ".depends_on[" + std::to_string(i) + "]"});
  }
  for (int i = 0; i < spec.inputs_size(); ++i) {
    const v1::Input& input = spec.inputs(i);
    if (input.has_from())
      job.artifact_inputs.push_back({.slot = input.slot(),
                                     .job = to_reference(input.from()),
                                     .artifact = input.from().artifact(),
                                     .field = path + ".inputs[" + std::to_string(i) + "].from"});
  }
}

}  // namespace

std::string action_of(const std::string& spec, const std::vector<JobInput>& inputs) {
  v1::JobSpec known;
  known.ParseFromString(spec);
  fill_inputs(inputs, known);
  return wire::action_digest(known);
}

QueueOptions with_actions(QueueOptions options) {
  options.results.action_of = action_of;
  return options;
}

void fill_inputs(const std::vector<JobInput>& inputs, v1::JobSpec& spec) {
  for (v1::Input& input : *spec.mutable_inputs()) {
    for (const JobInput& made : inputs) {
      if (made.slot != input.slot()) continue;
      input.set_digest(made.digest);
      input.set_size_bytes(static_cast<std::uint64_t>(made.size_bytes));
    }
  }
}

NewJob to_new_job(const v1::JobSpec& spec, const std::string& path) {
  NewJob job;
  JobRow& row = job.row;
  row.name = spec.name();
  row.kind = wire::kind_of(spec);
  row.priority = spec.priority();
  row.pool = spec.resources().pool().empty() ? "default" : spec.resources().pool();
  row.device = static_cast<Preference>(wire::device_of(spec));
  row.gpus = static_cast<std::int32_t>(spec.resources().gpus());
  row.memory_bytes = static_cast<std::int64_t>(spec.resources().gpu_mem_bytes());
  row.max_runtime_ms = to_milliseconds(spec.max_runtime());
  if (spec.has_not_before()) row.not_before_ms = to_milliseconds(spec.not_before());
  row.max_attempts = static_cast<std::int32_t>(
      spec.retry().max_attempts() > 0 ? spec.retry().max_attempts() : limits::kDefaultMaxAttempts);
  row.resume = !spec.retry().has_resume() || spec.retry().resume();
  row.checkpoints_kept = static_cast<std::int32_t>(
      spec.checkpoint().keep() > 0 ? spec.checkpoint().keep() : limits::kDefaultCheckpointsKept);
  row.checkpoint_ms = to_milliseconds(spec.checkpoint().interval());
  if (spec.visibility() == v1::VISIBILITY_TENANT) row.visibility = Visibility::kTenant;
  add_dependencies(spec, path, job);
  // The inputs that other jobs make are part of the action.
  if (job.artifact_inputs.empty()) row.action = wire::action_digest(spec);
  row.cache = spec.cache() == v1::CACHE_POLICY_UNSPECIFIED ? CachePolicy::kUse
                                                           : static_cast<CachePolicy>(spec.cache());
  job.spec = canonical_bytes(spec);
  for (const auto& [key, value] : spec.labels()) job.labels.emplace_back(key, value);
  for (const v1::Input& input : spec.inputs())
    if (!input.has_from())
      job.inputs.push_back({.slot = input.slot(),
                            .digest = input.digest(),
                            .size_bytes = static_cast<std::int64_t>(input.size_bytes())});
  return job;
}

JobQuery to_query(const v1::JobFilter& filter) {
  JobQuery query;
  query.uids.assign(filter.job_ids().begin(), filter.job_ids().end());
  for (const int state : filter.states()) query.states.push_back(static_cast<JobState>(state));
  query.kinds.assign(filter.kinds().begin(), filter.kinds().end());
  for (const auto& [key, value] : filter.labels()) query.labels.emplace_back(key, value);
  query.name_prefix = filter.name_prefix();
  query.set_uid = filter.job_set_id();
  if (filter.has_created_after()) query.created_after_ms = to_milliseconds(filter.created_after());
  if (filter.has_created_before())
    query.created_before_ms = to_milliseconds(filter.created_before());
  return query;
}

AttemptKey to_key(const v1::AttemptRef& ref) {
  return {.worker_id = ref.worker_id(),
          .attempt_uid = ref.attempt_id(),
          .fence = static_cast<std::int64_t>(ref.fence())};
}

FailureInfo to_failure(const v1::Failure& failure) {
  FailureInfo info{.reason = static_cast<FailureReason>(failure.reason()),
                   .message = failure.message()};
  if (failure.has_exit_status()) info.exit_status = failure.exit_status();
  if (failure.has_signal()) info.signal = failure.signal();
  return info;
}

UsageInfo to_usage(const v1::Usage& usage) {
  return {.wall_seconds = usage.wall_seconds(),
          .gpu_seconds = usage.gpu_seconds(),
          .peak_gpu_bytes = static_cast<std::int64_t>(usage.peak_gpu_bytes()),
          .peak_ram_bytes = static_cast<std::int64_t>(usage.peak_ram_bytes()),
          .energy_joules = usage.energy_joules()};
}

DeviceStatus to_device(const v1::Device& device) {
  DeviceStatus status;
  status.device = {.id = device.id(),
                   .backend = static_cast<Backend>(device.backend()),
                   .model = device.model(),
                   .memory_bytes = static_cast<std::int64_t>(device.memory_bytes()),
                   .slots = static_cast<std::int32_t>(device.slots())};
  status.free_bytes = static_cast<std::int64_t>(device.free_bytes());
  status.state = static_cast<DeviceState>(device.state());
  status.state_reason = device.state_reason();
  status.utilization = device.telemetry().utilization();
  status.temperature_c = device.telemetry().temperature_c();
  status.power_watts = device.telemetry().power_watts();
  return status;
}

v1::Failure to_message(const FailureInfo& failure) {
  v1::Failure message;
  message.set_reason(static_cast<v1::FailureReason>(failure.reason));
  message.set_message(failure.message);
  if (failure.exit_status) message.set_exit_status(*failure.exit_status);
  if (failure.signal) message.set_signal(*failure.signal);
  return message;
}

v1::Job to_job(const JobView& view) {
  const JobRow& row = view.row;
  v1::Job job;
  job.set_id(row.uid);
  job.mutable_spec()->ParseFromString(view.spec);
  job.set_kind(row.kind);
  job.set_state(static_cast<v1::JobState>(row.state));
  if (row.failure.reason != FailureReason::kNone) *job.mutable_failure() = to_message(row.failure);
  job.set_attempts(static_cast<std::uint32_t>(row.attempts));
  job.set_max_attempts(static_cast<std::uint32_t>(row.max_attempts));
  job.set_revision(static_cast<std::uint64_t>(row.revision));
  job.set_job_seq(static_cast<std::uint64_t>(row.job_seq));
  *job.mutable_created() = to_timestamp(row.created_ms);
  if (row.started_ms > 0) *job.mutable_started() = to_timestamp(row.started_ms);
  if (row.ended_ms > 0) *job.mutable_ended() = to_timestamp(row.ended_ms);
  if (row.not_before_ms > 0) *job.mutable_not_before() = to_timestamp(row.not_before_ms);
  if (row.cancel_requested_ms > 0)
    *job.mutable_cancel_requested() = to_timestamp(row.cancel_requested_ms);
  if (!view.progress.empty()) job.mutable_progress()->ParseFromString(view.progress);
  if (view.checkpoint) *job.mutable_checkpoint() = to_message(*view.checkpoint);
  job.set_summary_json(view.summary_json);
  job.set_log_bytes(static_cast<std::uint64_t>(view.log_bytes));
  job.set_owner(view.owner);
  job.set_tenant(row.tenant);
  job.set_priority(row.priority);
  job.set_reused(row.taken_from.has_value());
  job.set_reused_from(view.source_uid);
  job.set_action(row.action);
  job.set_job_set_id(view.set_uid);
  return job;
}

v1::Attempt to_message(const AttemptRow& attempt) {
  v1::Attempt message;
  message.set_id(attempt.uid);
  message.set_number(static_cast<std::uint32_t>(attempt.number));
  message.set_fence(static_cast<std::uint64_t>(attempt.fence));
  message.set_worker_id(attempt.worker_id);
  for (const std::string& id : attempt.device_ids) message.add_device_ids(id);
  *message.mutable_granted() = to_timestamp(attempt.granted_ms);
  if (attempt.started_ms > 0) *message.mutable_started() = to_timestamp(attempt.started_ms);
  if (attempt.ended_ms > 0) *message.mutable_ended() = to_timestamp(attempt.ended_ms);
  message.set_outcome(static_cast<v1::AttemptOutcome>(attempt.outcome));
  if (attempt.failure.reason != FailureReason::kNone)
    *message.mutable_failure() = to_message(attempt.failure);
  message.set_release_message(attempt.release_message);
  message.set_log_bytes(static_cast<std::uint64_t>(attempt.log_bytes));
  v1::Usage& usage = *message.mutable_usage();
  usage.set_wall_seconds(attempt.usage.wall_seconds);
  usage.set_gpu_seconds(attempt.usage.gpu_seconds);
  usage.set_peak_gpu_bytes(static_cast<std::uint64_t>(attempt.usage.peak_gpu_bytes));
  usage.set_peak_ram_bytes(static_cast<std::uint64_t>(attempt.usage.peak_ram_bytes));
  usage.set_energy_joules(attempt.usage.energy_joules);
  if (attempt.isolation) {
    message.mutable_isolation()->set_whole(attempt.isolation->is_whole);
    message.mutable_isolation()->set_walls(attempt.isolation->walls);
  }
  return message;
}

v1::Artifact to_message(const ArtifactRow& artifact) {
  v1::Artifact message;
  message.set_name(artifact.name);
  message.set_digest(artifact.digest);
  message.set_size_bytes(static_cast<std::uint64_t>(artifact.size_bytes));
  message.set_media_type(artifact.media_type);
  return message;
}

v1::Checkpoint to_message(const CheckpointRow& checkpoint) {
  v1::Checkpoint message;
  message.set_sequence(static_cast<std::uint64_t>(checkpoint.sequence));
  message.set_step(checkpoint.step);
  message.set_digest(checkpoint.digest);
  message.set_size_bytes(static_cast<std::uint64_t>(checkpoint.size_bytes));
  message.set_fence(static_cast<std::uint64_t>(checkpoint.fence));
  *message.mutable_created() = to_timestamp(checkpoint.created_ms);
  return message;
}

v1::Device to_message(const DeviceStatus& status) {
  v1::Device device;
  device.set_id(status.device.id);
  device.set_backend(static_cast<v1::DeviceBackend>(status.device.backend));
  device.set_model(status.device.model);
  device.set_memory_bytes(static_cast<std::uint64_t>(status.device.memory_bytes));
  device.set_free_bytes(static_cast<std::uint64_t>(status.free_bytes));
  device.set_slots(static_cast<std::uint32_t>(status.device.slots));
  device.set_state(static_cast<v1::DeviceState>(status.state));
  device.set_state_reason(status.state_reason);
  device.mutable_telemetry()->set_utilization(status.utilization);
  device.mutable_telemetry()->set_temperature_c(status.temperature_c);
  device.mutable_telemetry()->set_power_watts(status.power_watts);
  return device;
}

v1::WatchEvent to_message(const EventRow& event, const std::string& job_uid) {
  v1::WatchEvent message;
  message.set_seq(static_cast<std::uint64_t>(event.seq));
  message.set_job_id(job_uid);
  message.set_job_seq(static_cast<std::uint64_t>(event.job_seq));
  *message.mutable_time() = to_timestamp(event.time_ms);
  switch (event.type) {
    case EventType::kState: {
      v1::StateChanged& change = *message.mutable_state_changed();
      if (event.from) change.set_from(static_cast<v1::JobState>(*event.from));
      change.set_to(static_cast<v1::JobState>(event.to));
      if (event.failure.reason != FailureReason::kNone)
        *change.mutable_failure() = to_message(event.failure);
      change.set_attempt(static_cast<std::uint32_t>(event.attempt));
      change.set_attempt_id(event.attempt_uid);
      change.set_fence(static_cast<std::uint64_t>(event.fence));
      change.set_worker_id(event.worker_id);
      change.set_message(event.message);
      change.set_reinstated(event.reinstated);
      change.set_deleted(event.from == event.to);
      if (event.not_before_ms > 0) *change.mutable_not_before() = to_timestamp(event.not_before_ms);
      break;
    }
    case EventType::kProgress:
      message.mutable_progress()->ParseFromString(event.progress);
      break;
    case EventType::kLogGrown:
      message.mutable_log_grown()->set_attempt_id(event.attempt_uid);
      message.mutable_log_grown()->set_log_bytes(static_cast<std::uint64_t>(event.log_bytes));
      break;
    case EventType::kCheckpoint:
      *message.mutable_checkpoint() = to_message(event.checkpoint);
      break;
    case EventType::kPriority:
      message.mutable_priority()->set_from(event.old_priority);
      message.mutable_priority()->set_to(event.new_priority);
      break;
  }
  return message;
}

std::string canonical_bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

}  // namespace quasi::server
