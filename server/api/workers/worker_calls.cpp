#include "server/api/workers/worker_calls.hpp"

#include <algorithm>
#include <utility>

#include "proto/wire/digest.hpp"
#include "server/api/convert.hpp"

namespace quasi::server {
namespace {

void add_directive(v1::AttemptDirective& message, const std::string& attempt_id,
                   std::uint64_t fence, Directive directive) {
  message.set_attempt_id(attempt_id);
  message.set_fence(fence);
  message.set_directive(static_cast<v1::Directive>(directive));
}

}  // namespace

std::string pool_of(const v1::RegisterRequest& request) {
  return request.pool().empty() ? "default" : request.pool();
}

void register_worker(WriteContext& write, const ApiOptions& options,
                     const v1::RegisterRequest& request, v1::RegisterResponse& response) {
  RegisterWorker command;
  command.worker = {.id = request.worker_id(),
                    .incarnation = request.incarnation(),
                    .name = request.name(),
                    .version = request.version(),
                    .pool = pool_of(request),
                    .kinds = {request.kinds().begin(), request.kinds().end()},
                    .devices = {},
                    .last_seen_ms = write.now.wall_ms};
  for (const v1::Device& device : request.devices()) {
    DeviceStatus status = to_device(device);
    if (status.state == DeviceState::kUnsaid) status.state = DeviceState::kReady;
    command.worker.devices.push_back(status.device);
    command.devices.push_back(std::move(status));
  }
  for (const v1::AttemptRef& ref : request.salvage()) command.salvage.push_back(to_key(ref));
  const Registered registered = write.queue.apply(command, write.now);
  for (int i = 0; i < request.salvage_size(); ++i)
    add_directive(*response.add_salvage(), request.salvage(i).attempt_id(),
                  request.salvage(i).fence(), registered.salvage[static_cast<std::size_t>(i)]);
  *response.mutable_lease_ttl() = to_duration(options.lease_ttl_ms);
  *response.mutable_heartbeat_interval() = to_duration(options.heartbeat_interval_ms);
  *response.mutable_orphan_grace() = to_duration(options.orphan_grace_ms);
  *response.mutable_orphan_limit() = to_duration(options.orphan_limit_ms);
}

void keep_leases(WriteContext& write, const ApiOptions& options,
                 const v1::HeartbeatRequest& request, v1::HeartbeatResponse& response) {
  Heartbeat command{.worker_id = request.worker_id(),
                    .incarnation = request.incarnation(),
                    .attempts = {},
                    .devices = {},
                    .draining = request.draining()};
  for (const auto& status : request.attempts()) {
    AttemptProgress report{.attempt_uid = status.attempt_id(),
                           .fence = static_cast<std::int64_t>(status.fence()),
                           .progress = {},
                           .gpu_bytes = static_cast<std::int64_t>(status.gpu_bytes())};
    if (status.has_progress()) {
      v1::Progress progress = status.progress();
      if (!progress.has_time()) *progress.mutable_time() = to_timestamp(write.now.wall_ms);
      report.progress = progress.SerializeAsString();
    }
    command.attempts.push_back(std::move(report));
  }
  for (const v1::Device& device : request.devices()) command.devices.push_back(to_device(device));
  const HeartbeatAnswer answer = write.queue.apply(command, write.now);
  for (int i = 0; i < request.attempts_size(); ++i)
    add_directive(*response.add_attempts(), request.attempts(i).attempt_id(),
                  request.attempts(i).fence(), answer.directives[static_cast<std::size_t>(i)]);
  *response.mutable_lease_ttl() = to_duration(options.lease_ttl_ms);
}

void start_attempt(WriteContext& write, const v1::StartAttemptRequest& request) {
  StartAttempt command{.key = to_key(request.attempt())};
  if (request.has_isolation())
    command.isolation = IsolationInfo{.is_whole = request.isolation().whole(),
                                      .walls = request.isolation().walls()};
  write.queue.apply(command, write.now);
}

void append_log(WriteContext& write, const v1::AppendLogRequest& request,
                v1::AppendLogResponse& response) {
  const LogAppended appended =
      write.queue.apply(AppendLog{.key = to_key(request.attempt()),
                                  .offset = static_cast<std::int64_t>(request.offset()),
                                  .data = request.data()},
                        write.now);
  response.set_length(static_cast<std::uint64_t>(appended.length));
  response.set_full(appended.full);
}

void record_checkpoint(WriteContext& write, const v1::RecordCheckpointRequest& request) {
  write.queue.apply(
      RecordCheckpoint{
          .key = to_key(request.attempt()),
          .checkpoint = {.sequence = static_cast<std::int64_t>(request.sequence()),
                         .step = request.step(),
                         .digest = request.digest(),
                         .size_bytes = static_cast<std::int64_t>(request.size_bytes())}},
      write.now);
}

void complete_attempt(WriteContext& write, const v1::CompleteAttemptRequest& request,
                      v1::CompleteAttemptResponse& response) {
  CompleteAttempt command;
  command.key = to_key(request.attempt());
  command.usage = to_usage(request.usage());
  v1::CompleteAttemptRequest content = request;
  content.clear_attempt();
  command.report_digest = wire::sha256_hex(canonical_bytes(content));
  switch (request.outcome_case()) {
    case v1::CompleteAttemptRequest::kSucceeded:
      command.outcome = AttemptOutcome::kSucceeded;
      command.summary_json = request.succeeded().summary_json();
      for (const v1::Artifact& artifact : request.succeeded().artifacts())
        command.artifacts.push_back({.name = artifact.name(),
                                     .digest = artifact.digest(),
                                     .size_bytes = static_cast<std::int64_t>(artifact.size_bytes()),
                                     .media_type = artifact.media_type()});
      break;
    case v1::CompleteAttemptRequest::kFailed:
      command.outcome = AttemptOutcome::kFailed;
      command.failure = to_failure(request.failed());
      break;
    default:
      command.outcome = AttemptOutcome::kCancelled;
      break;
  }
  response.set_state(static_cast<v1::JobState>(write.queue.apply(command, write.now).state));
}

void release_lease(WriteContext& write, const v1::ReleaseLeaseRequest& request,
                   v1::ReleaseLeaseResponse& response) {
  const JobAfter after =
      write.queue.apply(ReleaseLease{.key = to_key(request.attempt()),
                                     .reason = static_cast<ReleaseReason>(request.reason()),
                                     .message = request.message()},
                        write.now);
  response.set_state(static_cast<v1::JobState>(after.state));
}

AcquireLeases to_command(const v1::AcquireLeasesRequest& request, std::int64_t waited_ms) {
  AcquireLeases command{.worker_id = request.worker_id(),
                        .incarnation = request.incarnation(),
                        .acquire_id = request.acquire_id()};
  for (const v1::FreeSlot& slot : request.slots())
    command.slots.push_back({.device_id = slot.device_id(),
                             .free_bytes = static_cast<std::int64_t>(slot.free_bytes())});
  if (request.has_time_left())
    command.time_left_ms =
        std::max<std::int64_t>(0, to_milliseconds(request.time_left()) - waited_ms);
  return command;
}

void add_grants(const Acquired& acquired, const ApiOptions& options,
                v1::AcquireLeasesResponse& response) {
  for (const Grant& grant : acquired.grants) {
    v1::Grant& message = *response.add_grants();
    message.set_job_id(grant.job.uid);
    message.mutable_attempt()->set_worker_id(grant.attempt.worker_id);
    message.mutable_attempt()->set_attempt_id(grant.attempt.uid);
    message.mutable_attempt()->set_fence(static_cast<std::uint64_t>(grant.attempt.fence));
    message.set_attempt_number(static_cast<std::uint32_t>(grant.attempt.number));
    *message.mutable_ttl() = to_duration(options.lease_ttl_ms);
    message.mutable_spec()->ParseFromString(grant.spec);
    fill_inputs(grant.made_inputs, *message.mutable_spec());
    for (const std::string& id : grant.attempt.device_ids) message.add_device_ids(id);
    message.set_reserved_gpu_bytes(static_cast<std::uint64_t>(grant.attempt.reserved_bytes));
    if (grant.checkpoint) *message.mutable_checkpoint() = to_message(*grant.checkpoint);
    *message.mutable_time_limit() = to_duration(grant.job.max_runtime_ms);
    *message.mutable_stage_timeout() = to_duration(options.stage_timeout_ms);
  }
}

}  // namespace quasi::server
