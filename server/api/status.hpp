#pragma once

#include <exception>
#include <string>

#include <grpcpp/support/status.h>

#include "proto/wire/validate.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {

/// The only place that turns our errors into a gRPC status. Nothing of ours: OK for a null pointer,
/// INTERNAL with an incident id (found in the log) for what should not happen.
grpc::Status to_status(const std::exception_ptr& error, const char* method);
grpc::Status to_status(const Refused& refused);

/// INVALID_ARGUMENT with every violation (FAILED_PRECONDITION / KIND_DISABLED where that is all).
grpc::Status to_status(const wire::Violations& violations);

/// RESOURCE_EXHAUSTED / SERVER_BUSY, or UNAVAILABLE / DRAINING while the server stops.
grpc::Status busy_status(bool draining);

}  // namespace quasi::server
