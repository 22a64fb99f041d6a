#pragma once

#include <cstdint>
#include <string>

#include "quasi/v1/worker_service.pb.h"
#include "server/api/services.hpp"
#include "server/service/queue_engine.hpp"

/// Begin here: server/api/workers holds the calls of workers. The functions of this file know no
/// threads and no gRPC. Each turns a valid request into a command of the queue, applies it, and
/// turns its result into the response. It throws the refusals of the queue.
namespace quasi::server {

/// The pool in which a worker registers.
std::string pool_of(const v1::RegisterRequest& request);

void register_worker(WriteContext& write, const ApiOptions& options,
                     const v1::RegisterRequest& request, v1::RegisterResponse& response);
void keep_leases(WriteContext& write, const ApiOptions& options,
                 const v1::HeartbeatRequest& request, v1::HeartbeatResponse& response);
void start_attempt(WriteContext& write, const v1::StartAttemptRequest& request);
void append_log(WriteContext& write, const v1::AppendLogRequest& request,
                v1::AppendLogResponse& response);
void record_checkpoint(WriteContext& write, const v1::RecordCheckpointRequest& request);
void complete_attempt(WriteContext& write, const v1::CompleteAttemptRequest& request,
                      v1::CompleteAttemptResponse& response);
void release_lease(WriteContext& write, const v1::ReleaseLeaseRequest& request,
                   v1::ReleaseLeaseResponse& response);

/// The command of a valid request for leases that has waited for jobs for `waited_ms`. The time
/// that the worker has left goes on meanwhile.
AcquireLeases to_command(const v1::AcquireLeasesRequest& request, std::int64_t waited_ms);
void add_grants(const Acquired& acquired, const ApiOptions& options,
                v1::AcquireLeasesResponse& response);

}  // namespace quasi::server
