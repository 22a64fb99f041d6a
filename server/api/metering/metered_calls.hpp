#pragma once

#include <grpcpp/server_builder.h>

#include "server/figures/call_figures.hpp"

namespace quasi::server {

/// Has every call of a server counted and timed in `figures`, which must outlive the server. The
/// figures learn the method, the status and the reason of a refusal, and nothing of the caller.
void meter_calls(grpc::ServerBuilder& builder, CallFigures& figures);

}  // namespace quasi::server
