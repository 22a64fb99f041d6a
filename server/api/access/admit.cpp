#include "server/api/access/admit.hpp"

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "server/access/rules.hpp"
#include "server/api/access/act.hpp"
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

/// Returns the refusal of a peer that has failed too often. Its wait is in whole seconds.
Refused too_many_failures(const Services& services, std::int64_t wait_ms, const std::string& last) {
  const std::string limit = std::to_string(services.options.failed_logins_per_minute);
  return Refused(Refusal::kResourceExhausted, wire::reason::kRateLimited,
                 "more than " + limit + " logins a minute from this address failed; wait " +
                     std::to_string((wait_ms + 999) / 1'000) + " s, then call with a valid token" +
                     (last.empty() ? "" : " (" + last + ")"))
      .retry_in(wait_ms);
}

}  // namespace

Refused refuse_login(Services& services, const grpc::CallbackServerContext& context,
                     const Refused& refused, std::string_view method) {
  const std::int64_t count = ++services.refused_tokens;
  const std::int64_t now_ms = services.clock.now().monotonic_ms;
  const std::int64_t wait_ms = services.failed_logins.add(host_of_peer(context.peer()), now_ms);
  // The limit of the peer bounds the rows of the audit and these lines of the log. Of the calls
  // that wait, one a second has a line.
  if (wait_ms == 0) record_failed_login(services.writer, context.peer(), method, refused.reason);
  if (wait_ms == 0 || services.refused_logged_s.exchange(now_ms / 1'000) != now_ms / 1'000)
    log(Level::kWarning, "login_failed",
        {{"reason", refused.reason},
         {"method", std::string(method)},
         {"peer", context.peer()},
         {"wait_ms", std::to_string(wait_ms)},
         {"since_start", std::to_string(count)}});
  return wait_ms == 0 ? refused : too_many_failures(services, wait_ms, refused.what());
}

Caller admit(Services& services, const grpc::CallbackServerContext& context,
             std::string_view method) {
  if (needs_no_token(method)) {
    const std::int64_t wait_ms = services.failed_logins.wait_ms(host_of_peer(context.peer()),
                                                                services.clock.now().monotonic_ms);
    if (wait_ms > 0) throw too_many_failures(services, wait_ms, "");
    return {};
  }
  Caller caller;
  try {
    caller = authenticate(services, context);
  } catch (const Refused& refused) {
    throw refuse_login(services, context, refused, method);
  }
  if (!may_call(caller.role, method))
    throw Refused(Refusal::kPermissionDenied, wire::reason::kRoleRequired,
                  "the role of " + caller.name + " is " + std::string(word_of(caller.role)) +
                      ", which may not call " + std::string(method) +
                      "; ask an admin of the server for another role");
  const TokenScopes needed = scopes_for(method);
  if (!caller.scopes.meets(needed))
    throw Refused(Refusal::kPermissionDenied, wire::reason::kScopeRequired,
                  "the token of " + caller.name + " has the scopes " + words_of(caller.scopes) +
                      ", and " + std::string(method) + " needs the scope " + words_of(needed) +
                      "; ask an admin of the server for a token with it: quasi admin token " +
                      caller.name + " --scope " + words_of(needed));
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

std::optional<grpc::Status> lost_right(const Services& services, const Caller& caller,
                                       const char* method) {
  try {
    services.directory.require_still(caller, services.clock.now().wall_ms);
    return std::nullopt;
  } catch (...) {
    return to_status(std::current_exception(), method);
  }
}

Admission stream_admission_of(Services& services, const grpc::CallbackServerContext& context,
                              const char* method) {
  Admission admission = admission_of(services, context, method);
  if (!admission.caller) return admission;
  try {
    admission.place = services.open_streams.open(*admission.caller);
  } catch (...) {
    return {.caller = std::nullopt, .refusal = to_status(std::current_exception(), method)};
  }
  return admission;
}

}  // namespace quasi::server
