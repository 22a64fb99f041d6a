#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "proto/wire/status.hpp"
#include "proto/wire/validate.hpp"
#include "server/api/services.hpp"
#include "server/api/status.hpp"

/// Runs unary calls. A request is checked on gRPC's thread, executed on the writer's or a reader's
/// thread, and finished there. No handler blocks.
namespace quasi::server {

/// Finishes a call. A refusal with a delay also tells gRPC's own retry logic to wait that long.
inline void finish(grpc::ServerUnaryReactor* reactor, grpc::CallbackServerContext* context,
                   const grpc::Status& status) {
  if (!status.ok()) {
    // The client's gRPC library handles short waits by itself. Long waits, e.g. on a full disk, are
    // reported to the caller at once.
    if (const auto delay = wire::parse_details(status).retry_after)
      context->AddTrailingMetadata("grpc-retry-pushback-ms",
                                   delay->count() <= 5'000 ? std::to_string(delay->count()) : "-1");
  }
  reactor->Finish(status);
}

/// @throws Refused if the call was cancelled or its deadline has passed; then no work is done.
inline void require_awaited(grpc::CallbackServerContext* context) {
  if (context->IsCancelled() || context->deadline() <= std::chrono::system_clock::now())
    throw Refused(Refusal::kDeadlineExceeded, wire::reason::kDeadline,
                  "the call's deadline passed before the server began it; nothing was changed. "
                  "Repeat the call");
}

/// Runs a call that changes the store. `body` runs in the writer's transaction and fills the
/// response.
inline grpc::ServerUnaryReactor* write_call(Services& services,
                                            grpc::CallbackServerContext* context,
                                            const wire::Violations& violations, const char* method,
                                            std::function<void(WriteContext&)> body) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!violations.empty()) {
    finish(reactor, context, to_status(violations));
    return reactor;
  }
  const bool posted =
      services.writer.post({.body =
                                [context, body = std::move(body)](WriteContext& write) {
                                  require_awaited(context);
                                  body(write);
                                },
                            .done =
                                [reactor, context, method](const std::exception_ptr& error) {
                                  finish(reactor, context, to_status(error, method));
                                }});
  if (!posted) finish(reactor, context, busy_status(services.draining));
  return reactor;
}

/// Runs a call that only reads the store. `body` runs on a reader's thread.
inline grpc::ServerUnaryReactor* read_call(Services& services, grpc::CallbackServerContext* context,
                                           const wire::Violations& violations, const char* method,
                                           std::function<void(ReadStore&)> body) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (!violations.empty()) {
    finish(reactor, context, to_status(violations));
    return reactor;
  }
  const bool posted =
      services.readers.read([reactor, context, method, body = std::move(body)](ReadStore& store) {
        grpc::Status status;
        try {
          body(store);
        } catch (...) {
          status = to_status(std::current_exception(), method);
        }
        finish(reactor, context, status);
      });
  if (!posted) finish(reactor, context, busy_status(services.draining));
  return reactor;
}

/// Checks a request by the rules of proto/wire/validate.hpp.
template <class Request>
wire::Violations violations_of(const Request& request) {
  wire::Violations violations;
  wire::validate(request, violations);
  return violations;
}

}  // namespace quasi::server
