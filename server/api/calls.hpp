#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "proto/wire/validate.hpp"
#include "server/api/access/admit.hpp"
#include "server/api/convert.hpp"
#include "server/api/services.hpp"
#include "server/api/status.hpp"

/// Runs unary calls. A request is checked on gRPC's thread, executed on the writer's or a reader's
/// thread, and finished there. No handler blocks.
namespace quasi::server {

/// Finishes a call. A refusal with a delay also tells gRPC's own retry logic to wait that long. A
/// limit without a delay, e.g. a quota, tells it not to repeat the call.
inline void finish(grpc::ServerUnaryReactor* reactor, grpc::CallbackServerContext* context,
                   const grpc::Status& status) {
  if (!status.ok()) {
    // The client's gRPC library handles short waits by itself. Long waits, e.g. on a full disk, are
    // reported to the caller at once.
    const auto delay = wire::parse_details(status).retry_after;
    if (delay && delay->count() <= 5'000)
      context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(delay->count()));
    else if (delay || status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
      context->AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
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

/// Calls a body with the store and, if it takes one, the caller.
template <class Body, class Store>
void call_body(const Body& body, Store& store, const Caller& caller) {
  if constexpr (std::is_invocable_v<const Body&, Store&, const Caller&>)
    body(store, caller);
  else
    body(store);
}

/// Admits a call and checks its request; otherwise finishes it. @return the caller, if any.
inline std::optional<Caller> begin_call(Services& services, grpc::CallbackServerContext* context,
                                        grpc::ServerUnaryReactor* reactor,
                                        const wire::Violations& violations, const char* method) {
  try {
    Caller caller = admit(services, *context, method);
    services.call_rates.charge(caller, method, services.clock.now().monotonic_ms);
    if (violations.empty()) return caller;
    finish(reactor, context, to_status(violations));
  } catch (...) {
    finish(reactor, context, to_status(std::current_exception(), method));
  }
  return std::nullopt;
}

/// The parts of a call that changes the store, besides its body.
struct WriteRules {
  std::function<void()> committed = {};  ///< runs after the commit and before the answer
  bool checks_first = false;             ///< the body refuses before its first write (WriteTask)
};

/// Runs a call that changes the store. `body` runs in the writer's transaction and fills the
/// response; it takes the WriteContext and, if it likes, the Caller.
template <class Body>
grpc::ServerUnaryReactor* write_call(Services& services, grpc::CallbackServerContext* context,
                                     const wire::Violations& violations, const char* method,
                                     Body body, WriteRules rules = {}) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto caller = begin_call(services, context, reactor, violations, method);
  if (!caller) return reactor;
  const bool posted =
      services.writer.post({.body =
                                [context, caller, body = std::move(body)](WriteContext& write) {
                                  require_awaited(context);
                                  call_body(body, write, *caller);
                                },
                            .done =
                                [reactor, context, method, committed = std::move(rules.committed)](
                                    const std::exception_ptr& error) {
                                  if (!error && committed) committed();
                                  finish(reactor, context, to_status(error, method));
                                },
                            .checks_first = rules.checks_first});
  if (!posted) finish(reactor, context, busy_status(services.draining));
  return reactor;
}

/// Runs a call that only reads the store. `body` runs on a reader's thread; it takes the ReadStore
/// and, if it likes, the Caller.
template <class Body>
grpc::ServerUnaryReactor* read_call(Services& services, grpc::CallbackServerContext* context,
                                    const wire::Violations& violations, const char* method,
                                    Body body) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto caller = begin_call(services, context, reactor, violations, method);
  if (!caller) return reactor;
  const bool posted = services.readers.read(
      [reactor, context, method, caller, body = std::move(body)](ReadStore& store) {
        grpc::Status status;
        try {
          call_body(body, store, *caller);
        } catch (...) {
          status = to_status(std::current_exception(), method);
        }
        finish(reactor, context, status);
      });
  if (!posted) finish(reactor, context, busy_status(services.draining));
  return reactor;
}

/// Runs a call that asks the queue and then reads the store. `ask` runs on the writer's thread and
/// changes nothing; `read` runs on a reader's thread with the answer of `ask`.
template <class Answer, class Ask, class Read>
grpc::ServerUnaryReactor* ask_and_read(Services& services, grpc::CallbackServerContext* context,
                                       const wire::Violations& violations, const char* method,
                                       Ask ask, Read read) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto caller = begin_call(services, context, reactor, violations, method);
  if (!caller) return reactor;
  auto answer = std::make_shared<Answer>();
  const auto read_with = [reactor, context, method, caller, answer, read](ReadStore& store) {
    grpc::Status status;
    try {
      read(store, *caller, *answer);
    } catch (...) {
      status = to_status(std::current_exception(), method);
    }
    finish(reactor, context, status);
  };
  const bool posted = services.writer.post(
      {.body =
           [ask, context, caller, answer](WriteContext& write) {
             require_awaited(context);
             *answer = ask(write, *caller);
           },
       .done =
           [&services, reactor, context, method, read_with](const std::exception_ptr& error) {
             if (error) return finish(reactor, context, to_status(error, method));
             if (!services.readers.read(read_with))
               finish(reactor, context, busy_status(services.draining));
           }});
  if (!posted) finish(reactor, context, busy_status(services.draining));
  return reactor;
}

/// SHA-256 of a request without its id. A repeated request must have the same digest.
template <class Request>
std::string body_digest(const Request& request) {
  Request body = request;
  body.clear_request_id();
  return wire::sha256_hex(canonical_bytes(body));
}

/// Checks a request by the rules of proto/wire/validate.hpp.
template <class Request>
wire::Violations violations_of(const Request& request) {
  wire::Violations violations;
  wire::validate(request, violations);
  return violations;
}

}  // namespace quasi::server
