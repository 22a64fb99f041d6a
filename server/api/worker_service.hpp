#pragma once

#include "quasi/v1/worker_service.grpc.pb.h"
#include "server/api/services.hpp"

namespace quasi::server {

/// Implements quasi.v1.WorkerService: each method checks its request, converts it and posts it to
/// the writer or a reader.
class WorkerServiceApi : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerServiceApi(Services& services) : services_(services) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext*, const v1::RegisterRequest*,
                                     v1::RegisterResponse*) override;
  grpc::ServerUnaryReactor* AcquireLeases(grpc::CallbackServerContext*,
                                          const v1::AcquireLeasesRequest*,
                                          v1::AcquireLeasesResponse*) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext*, const v1::HeartbeatRequest*,
                                      v1::HeartbeatResponse*) override;
  grpc::ServerUnaryReactor* StartAttempt(grpc::CallbackServerContext*,
                                         const v1::StartAttemptRequest*,
                                         v1::StartAttemptResponse*) override;
  grpc::ServerUnaryReactor* AppendLog(grpc::CallbackServerContext*, const v1::AppendLogRequest*,
                                      v1::AppendLogResponse*) override;
  grpc::ServerUnaryReactor* RecordCheckpoint(grpc::CallbackServerContext*,
                                             const v1::RecordCheckpointRequest*,
                                             v1::RecordCheckpointResponse*) override;
  grpc::ServerUnaryReactor* CompleteAttempt(grpc::CallbackServerContext*,
                                            const v1::CompleteAttemptRequest*,
                                            v1::CompleteAttemptResponse*) override;
  grpc::ServerUnaryReactor* ReleaseLease(grpc::CallbackServerContext*,
                                         const v1::ReleaseLeaseRequest*,
                                         v1::ReleaseLeaseResponse*) override;

 private:
  Services& services_;
};

/// Creates the long poll, which has a file of its own (acquire_call.cpp).
grpc::ServerUnaryReactor* acquire_leases(Services&, grpc::CallbackServerContext*,
                                         const v1::AcquireLeasesRequest*,
                                         v1::AcquireLeasesResponse*, const Caller&);

}  // namespace quasi::server
