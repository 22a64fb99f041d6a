#include "server/api/worker_service.hpp"

#include "proto/wire/digest.hpp"
#include "server/api/calls.hpp"
#include "server/api/convert.hpp"

namespace quasi::server {
namespace {

void add_directive(v1::AttemptDirective& message, const std::string& attempt_id,
                   std::uint64_t fence, Directive directive) {
  message.set_attempt_id(attempt_id);
  message.set_fence(fence);
  message.set_directive(static_cast<v1::Directive>(directive));
}

std::string pool_of(const v1::RegisterRequest& request) {
  return request.pool().empty() ? "default" : request.pool();
}

/// @throws Refused if the caller is bound to another pool.
void require_pool(const Caller& caller, const std::string& pool) {
  if (caller.pool.empty() || caller.pool == pool) return;
  throw Refused(Refusal::kPermissionDenied, wire::reason::kPoolRequired,
                "pool: the worker " + caller.name + " is bound to the pool " + caller.pool +
                    " and cannot register in " + pool + "; set pool = \"" + caller.pool +
                    "\" in the configuration of the worker");
}

}  // namespace

grpc::ServerUnaryReactor* WorkerServiceApi::Register(grpc::CallbackServerContext* context,
                                                     const v1::RegisterRequest* request,
                                                     v1::RegisterResponse* response) {
  return write_call(services_, context, violations_of(*request), "Register",
                    [this, request, response](WriteContext& write, const Caller& caller) {
                      require_pool(caller, pool_of(*request));
                      RegisterWorker command;
                      command.worker = {.id = request->worker_id(),
                                        .incarnation = request->incarnation(),
                                        .name = request->name(),
                                        .version = request->version(),
                                        .pool = pool_of(*request),
                                        .kinds = {request->kinds().begin(), request->kinds().end()},
                                        .devices = {},
                                        .last_seen_ms = write.now.wall_ms};
                      for (const v1::Device& device : request->devices()) {
                        DeviceStatus status = to_device(device);
                        if (status.state == DeviceState::kUnsaid)
                          status.state = DeviceState::kReady;
                        command.worker.devices.push_back(status.device);
                        command.devices.push_back(std::move(status));
                      }
                      for (const v1::AttemptRef& ref : request->salvage())
                        command.salvage.push_back(to_key(ref));
                      const Registered registered = write.queue.apply(command, write.now);
                      for (int i = 0; i < request->salvage_size(); ++i)
                        add_directive(*response->add_salvage(), request->salvage(i).attempt_id(),
                                      request->salvage(i).fence(),
                                      registered.salvage[static_cast<std::size_t>(i)]);
                      const ApiOptions& options = services_.options;
                      *response->mutable_lease_ttl() = to_duration(options.lease_ttl_ms);
                      *response->mutable_heartbeat_interval() =
                          to_duration(options.heartbeat_interval_ms);
                      *response->mutable_orphan_grace() = to_duration(options.orphan_grace_ms);
                      *response->mutable_orphan_limit() = to_duration(options.orphan_limit_ms);
                    });
}

grpc::ServerUnaryReactor* WorkerServiceApi::AcquireLeases(grpc::CallbackServerContext* context,
                                                          const v1::AcquireLeasesRequest* request,
                                                          v1::AcquireLeasesResponse* response) {
  const Admission admission = admission_of(services_, *context, "AcquireLeases");
  if (!admission.caller) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    finish(reactor, context, admission.refusal);
    return reactor;
  }
  return acquire_leases(services_, context, request, response, *admission.caller);
}

grpc::ServerUnaryReactor* WorkerServiceApi::Heartbeat(grpc::CallbackServerContext* context,
                                                      const v1::HeartbeatRequest* request,
                                                      v1::HeartbeatResponse* response) {
  return write_call(services_, context, violations_of(*request), "Heartbeat",
                    [this, request, response](WriteContext& write) {
                      server::Heartbeat command{.worker_id = request->worker_id(),
                                                .incarnation = request->incarnation(),
                                                .attempts = {},
                                                .devices = {},
                                                .draining = request->draining()};
                      for (const auto& status : request->attempts()) {
                        AttemptProgress report{
                            .attempt_uid = status.attempt_id(),
                            .fence = static_cast<std::int64_t>(status.fence()),
                            .progress = {},
                            .gpu_bytes = static_cast<std::int64_t>(status.gpu_bytes())};
                        if (status.has_progress()) {
                          v1::Progress progress = status.progress();
                          if (!progress.has_time())
                            *progress.mutable_time() = to_timestamp(write.now.wall_ms);
                          report.progress = progress.SerializeAsString();
                        }
                        command.attempts.push_back(std::move(report));
                      }
                      for (const v1::Device& device : request->devices())
                        command.devices.push_back(to_device(device));
                      const HeartbeatAnswer answer = write.queue.apply(command, write.now);
                      for (int i = 0; i < request->attempts_size(); ++i)
                        add_directive(*response->add_attempts(), request->attempts(i).attempt_id(),
                                      request->attempts(i).fence(),
                                      answer.directives[static_cast<std::size_t>(i)]);
                      *response->mutable_lease_ttl() = to_duration(services_.options.lease_ttl_ms);
                    });
}

grpc::ServerUnaryReactor* WorkerServiceApi::StartAttempt(grpc::CallbackServerContext* context,
                                                         const v1::StartAttemptRequest* request,
                                                         v1::StartAttemptResponse*) {
  return write_call(services_, context, violations_of(*request), "StartAttempt",
                    [request](WriteContext& write) {
                      server::StartAttempt command{.key = to_key(request->attempt())};
                      if (request->has_isolation())
                        command.isolation = IsolationInfo{.is_whole = request->isolation().whole(),
                                                          .walls = request->isolation().walls()};
                      write.queue.apply(command, write.now);
                    });
}

grpc::ServerUnaryReactor* WorkerServiceApi::AppendLog(grpc::CallbackServerContext* context,
                                                      const v1::AppendLogRequest* request,
                                                      v1::AppendLogResponse* response) {
  return write_call(services_, context, violations_of(*request), "AppendLog",
                    [request, response](WriteContext& write) {
                      const LogAppended appended = write.queue.apply(
                          server::AppendLog{.key = to_key(request->attempt()),
                                            .offset = static_cast<std::int64_t>(request->offset()),
                                            .data = request->data()},
                          write.now);
                      response->set_length(static_cast<std::uint64_t>(appended.length));
                      response->set_full(appended.full);
                    });
}

grpc::ServerUnaryReactor* WorkerServiceApi::RecordCheckpoint(
    grpc::CallbackServerContext* context, const v1::RecordCheckpointRequest* request,
    v1::RecordCheckpointResponse*) {
  return write_call(
      services_, context, violations_of(*request), "RecordCheckpoint",
      [request](WriteContext& write) {
        write.queue.apply(
            server::RecordCheckpoint{
                .key = to_key(request->attempt()),
                .checkpoint = {.sequence = static_cast<std::int64_t>(request->sequence()),
                               .step = request->step(),
                               .digest = request->digest(),
                               .size_bytes = static_cast<std::int64_t>(request->size_bytes())}},
            write.now);
      });
}

grpc::ServerUnaryReactor* WorkerServiceApi::CompleteAttempt(
    grpc::CallbackServerContext* context, const v1::CompleteAttemptRequest* request,
    v1::CompleteAttemptResponse* response) {
  return write_call(
      services_, context, violations_of(*request), "CompleteAttempt",
      [request, response](WriteContext& write) {
        server::CompleteAttempt command;
        command.key = to_key(request->attempt());
        command.usage = to_usage(request->usage());
        v1::CompleteAttemptRequest content = *request;
        content.clear_attempt();
        command.report_digest = wire::sha256_hex(canonical_bytes(content));
        switch (request->outcome_case()) {
          case v1::CompleteAttemptRequest::kSucceeded:
            command.outcome = AttemptOutcome::kSucceeded;
            command.summary_json = request->succeeded().summary_json();
            for (const v1::Artifact& artifact : request->succeeded().artifacts())
              command.artifacts.push_back(
                  {.name = artifact.name(),
                   .digest = artifact.digest(),
                   .size_bytes = static_cast<std::int64_t>(artifact.size_bytes()),
                   .media_type = artifact.media_type()});
            break;
          case v1::CompleteAttemptRequest::kFailed:
            command.outcome = AttemptOutcome::kFailed;
            command.failure = to_failure(request->failed());
            break;
          default:
            command.outcome = AttemptOutcome::kCancelled;
            break;
        }
        response->set_state(static_cast<v1::JobState>(write.queue.apply(command, write.now).state));
      });
}

grpc::ServerUnaryReactor* WorkerServiceApi::ReleaseLease(grpc::CallbackServerContext* context,
                                                         const v1::ReleaseLeaseRequest* request,
                                                         v1::ReleaseLeaseResponse* response) {
  return write_call(
      services_, context, violations_of(*request), "ReleaseLease",
      [request, response](WriteContext& write) {
        const JobAfter after = write.queue.apply(
            server::ReleaseLease{.key = to_key(request->attempt()),
                                 .reason = static_cast<server::ReleaseReason>(request->reason()),
                                 .message = request->message()},
            write.now);
        response->set_state(static_cast<v1::JobState>(after.state));
      });
}

}  // namespace quasi::server
