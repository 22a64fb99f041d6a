#include "server/api/worker_service.hpp"

#include "server/api/calls.hpp"
#include "server/api/workers/worker_calls.hpp"

namespace quasi::server {
namespace {

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
                      register_worker(write, services_.options, *request, *response);
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
                      keep_leases(write, services_.options, *request, *response);
                    });
}

grpc::ServerUnaryReactor* WorkerServiceApi::StartAttempt(grpc::CallbackServerContext* context,
                                                         const v1::StartAttemptRequest* request,
                                                         v1::StartAttemptResponse*) {
  return write_call(services_, context, violations_of(*request), "StartAttempt",
                    [request](WriteContext& write) { start_attempt(write, *request); });
}

grpc::ServerUnaryReactor* WorkerServiceApi::AppendLog(grpc::CallbackServerContext* context,
                                                      const v1::AppendLogRequest* request,
                                                      v1::AppendLogResponse* response) {
  return write_call(
      services_, context, violations_of(*request), "AppendLog",
      [request, response](WriteContext& write) { append_log(write, *request, *response); });
}

grpc::ServerUnaryReactor* WorkerServiceApi::RecordCheckpoint(
    grpc::CallbackServerContext* context, const v1::RecordCheckpointRequest* request,
    v1::RecordCheckpointResponse*) {
  return write_call(services_, context, violations_of(*request), "RecordCheckpoint",
                    [request](WriteContext& write) { record_checkpoint(write, *request); });
}

grpc::ServerUnaryReactor* WorkerServiceApi::CompleteAttempt(
    grpc::CallbackServerContext* context, const v1::CompleteAttemptRequest* request,
    v1::CompleteAttemptResponse* response) {
  return write_call(
      services_, context, violations_of(*request), "CompleteAttempt",
      [request, response](WriteContext& write) { complete_attempt(write, *request, *response); });
}

grpc::ServerUnaryReactor* WorkerServiceApi::ReleaseLease(grpc::CallbackServerContext* context,
                                                         const v1::ReleaseLeaseRequest* request,
                                                         v1::ReleaseLeaseResponse* response) {
  return write_call(
      services_, context, violations_of(*request), "ReleaseLease",
      [request, response](WriteContext& write) { release_lease(write, *request, *response); });
}

}  // namespace quasi::server
