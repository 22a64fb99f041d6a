#include "server/api/access/admit.hpp"

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "server/access/rules.hpp"
#include "server/api/status.hpp"
#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr std::string_view kBearer = "Bearer ";

Caller authenticate(const Services& services, const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) {
    if (!services.options.require_tokens && context.peer().starts_with("unix:"))
      return {.principal_id = 0, .name = "local", .role = Role::kAdmin, .tenant = "default"};
    throw Refused(Refusal::kUnauthenticated, wire::reason::kTokenMissing,
                  "the call carries no token, and this address asks for one; give a token file, or "
                  "use the server's Unix socket as a user whom it knows");
  }
  const std::string_view value(found->second.data(), found->second.size());
  if (!value.starts_with(kBearer) || value.size() > limits::kAuthorizationBytes)
    throw Refused(Refusal::kUnauthenticated, wire::reason::kTokenInvalid,
                  "authorization: must be \"Bearer \" and a token");
  return services.directory.authenticate(value.substr(kBearer.size()),
                                         services.clock.now().wall_ms);
}

}  // namespace

void log_refused_login(Services& services, const grpc::CallbackServerContext& context,
                       std::string_view reason, std::string_view method) {
  const std::int64_t count = ++services.refused_tokens;
  const std::int64_t second = services.clock.now().monotonic_ms / 1'000;
  if (services.refused_logged_s.exchange(second) == second) return;
  log(Level::kWarning, "login_failed",
      {{"reason", std::string(reason)},
       {"method", std::string(method)},
       {"peer", context.peer()},
       {"since_start", std::to_string(count)}});
}

Caller admit(Services& services, const grpc::CallbackServerContext& context,
             std::string_view method) {
  if (needs_no_token(method)) return {};
  Caller caller;
  try {
    caller = authenticate(services, context);
  } catch (const Refused& refused) {
    log_refused_login(services, context, refused.reason, method);
    throw;
  }
  if (!may_call(caller.role, method))
    throw Refused(Refusal::kPermissionDenied, wire::reason::kRoleRequired,
                  "the role of " + caller.name + " is " + std::string(word_of(caller.role)) +
                      ", which may not call " + std::string(method) +
                      "; ask an admin of the server for another role");
  return caller;
}

Scope scope_of(const Caller& caller) {
  // A worker needs the files of every job that it is granted.
  return {.is_everything = caller.role >= Role::kOperator,
          .principal_id = caller.principal_id,
          .tenant = caller.tenant};
}

std::string upload_key(const Caller& caller, const std::string& upload_id) {
  return caller.principal_id == 0 ? upload_id
                                  : "p" + std::to_string(caller.principal_id) + "." + upload_id;
}

Admission admission_of(Services& services, const grpc::CallbackServerContext& context,
                       const char* method) {
  try {
    return {.caller = admit(services, context, method), .refusal = grpc::Status::OK};
  } catch (...) {
    return {.caller = std::nullopt, .refusal = to_status(std::current_exception(), method)};
  }
}

}  // namespace quasi::server
