#pragma once

#include <exception>
#include <string>

#include <grpcpp/support/status.h>

#include "proto/wire/validate.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {

/// Converts an exception to a gRPC status; no other function does. A null pointer gives OK. An
/// unexpected exception gives INTERNAL with an incident id, which the log repeats.
grpc::Status to_status(const std::exception_ptr& error, const char* method);
grpc::Status to_status(const Refused& refused);

/// INVALID_ARGUMENT with every violation; FAILED_PRECONDITION / KIND_DISABLED if every violation is
/// a disabled kind.
grpc::Status to_status(const wire::Violations& violations);

/// RESOURCE_EXHAUSTED / SERVER_BUSY, or UNAVAILABLE / DRAINING while the server stops.
grpc::Status busy_status(bool draining);

}  // namespace quasi::server
