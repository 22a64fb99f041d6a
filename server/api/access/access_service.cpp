#include "server/api/access/access_service.hpp"

#include <memory>

#include "proto/wire/access/join_code.hpp"
#include "proto/wire/access/tls.hpp"
#include "proto/wire/checks.hpp"
#include "proto/wire/digest.hpp"
#include "server/api/access/act.hpp"
#include "server/api/access/token_grants.hpp"
#include "server/api/calls.hpp"
#include "server/api/convert.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kMsPerDay = 86'400'000;
constexpr std::int64_t kOverlapMs = kMsPerDay;
constexpr std::int64_t kCodeMs = 15 * 60'000;
constexpr std::int64_t kMostCodeSeconds = 7 * 86'400;

Refused refused_code(std::string_view reason, const std::string& what) {
  return Refused(Refusal::kUnauthenticated, reason,
                 "the code " + what + "; ask the operator of the server for a new one");
}

/// The code with this secret. @throws Refused if it is unknown, used or too old.
CodeRow require_code(AccessStore& access, const std::string& secret, std::int64_t now_ms) {
  const auto code = access.find_code(wire::sha256_bytes(secret));
  if (!code) throw refused_code(wire::kCodeInvalid, "is not known to this server");
  if (code->used_ms > 0)
    throw refused_code(wire::kCodeUsed,
                       "was used before (if not by you, tell the operator at once)");
  if (code->expires_ms <= now_ms) throw refused_code(wire::kCodeExpired, "is older than its time");
  return *code;
}

/// Violations of a request whose secret has another size than that of a code.
wire::Violations violations_of_secret(const v1::RedeemCodeRequest& request) {
  wire::Violations violations;
  if (request.secret().size() != wire::kCodeSecretBytes)
    violations.add("secret", "must have " + std::to_string(wire::kCodeSecretBytes) +
                                 " bytes, got " + std::to_string(request.secret().size()));
  return violations;
}

/// Violations of a request for a code. Its lifetime is 0 to 7 days.
wire::Violations violations_of_code(const v1::CreateCodeRequest& request) {
  wire::Violations violations;
  const auto& lifetime = request.lifetime();
  if (lifetime.nanos() < 0 || lifetime.nanos() > 999'999'999 || lifetime.seconds() < 0 ||
      lifetime.seconds() > kMostCodeSeconds)
    violations.add("lifetime", "must be 0 s ... " + std::to_string(kMostCodeSeconds) + " s, got " +
                                   std::to_string(lifetime.seconds()) + " s");
  wire::checks::scopes(request.scopes(), violations);
  return violations;
}

/// The address and the fingerprint for a code of this role. A worker is sent to the port of
/// `worker_listen`, if there is one on TCP. @throws Refused if the server has no public address.
wire::JoinCode place_of(const ApiOptions& options, Role role) {
  if (options.public_address.empty() || options.tls_ca.empty())
    throw Refused(Refusal::kFailedPrecondition, wire::reason::kWrongState,
                  "this server makes no codes: its keys public_address and tls_ca are not set; "
                  "make a token instead: quasi admin token NAME");
  wire::JoinCode place{
      .address = options.public_address,
      .fingerprint = wire::certificate_fingerprint(wire::read_certificates(options.tls_ca)),
      .secret = {}};
  if (role == Role::kWorker && !options.worker_port.empty())
    place.address.replace(place.address.rfind(':') + 1, std::string::npos, options.worker_port);
  return place;
}

/// The principal that a code is for. @throws Refused if it was disabled since.
Principal require_active(AccessStore& access, std::int64_t id) {
  for (const Principal& principal : access.all().principals)
    if (principal.id == id && !principal.disabled) return principal;
  throw refused_code(wire::kCodeInvalid, "is for a user who was disabled");
}

/// The key id of the token that a call carries; "" for a session of a Unix socket.
std::string key_id_of(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return {};
  const std::string_view value(found->second.data(), found->second.size());
  constexpr std::string_view kPrefix = "Bearer qsi_";
  return value.starts_with(kPrefix) ? std::string(value.substr(kPrefix.size(), 12)) : std::string();
}

/// Holds the text and the end of a token that was just made.
struct Granted {
  std::string text;
  google::protobuf::Timestamp expires;
};

/// Makes a token of the usual lifetime for a principal.
Granted grant_token(AccessStore& access, const Principal& owner, const TokenScopes& scopes,
                    std::int64_t now_ms) {
  const NewToken token = make_token();
  const TokenRow row{.key_id = token.key_id,
                     .secret_sha256 = token.secret_sha256,
                     .principal_id = owner.id,
                     .created_ms = now_ms,
                     .expires_ms = now_ms + usual_token_days(owner.role) * kMsPerDay,
                     .scopes = scopes};
  access.insert_token(row);
  return {.text = token.text, .expires = to_timestamp(row.expires_ms)};
}

}  // namespace

grpc::ServerUnaryReactor* AccessServiceApi::RedeemCode(grpc::CallbackServerContext* context,
                                                       const v1::RedeemCodeRequest* request,
                                                       v1::RedeemCodeResponse* response) {
  auto tables = std::make_shared<AccessTables>();
  auto act = std::make_shared<Act>(*context, "login", "RedeemCode");
  return write_call(services_, context, violations_of_secret(*request), "RedeemCode",
                    [=, this](WriteContext& write) {
                      const std::int64_t now_ms = write.now.wall_ms;
                      try {
                        const CodeRow code = require_code(write.access, request->secret(), now_ms);
                        const Principal owner = require_active(write.access, code.principal_id);
                        write.access.use_code(code.id, now_ms);
                        const Granted token = grant_token(write.access, owner, code.scopes, now_ms);
                        response->set_token(token.text);
                        *response->mutable_expires() = token.expires;
                        response->set_principal(owner.name);
                        response->set_pool(owner.pool);
                        response->set_role(static_cast<v1::Role>(owner.role));
                        add_scopes(code.scopes, *response->mutable_scopes());
                        act->record(write, owner.name, {.names = {owner.name}});
                      } catch (const Refused& refused) {
                        throw refuse_login(services_, *context, refused, "RedeemCode");
                      }
                      *tables = write.access.all();
                    },
                    {.committed = [=, this] {
                      services_.directory.replace(*tables);
                      act->log_committed();
                    }});
}

grpc::ServerUnaryReactor* AccessServiceApi::RenewToken(grpc::CallbackServerContext* context,
                                                       const v1::RenewTokenRequest*,
                                                       v1::RenewTokenResponse* response) {
  auto tables = std::make_shared<AccessTables>();
  auto act = std::make_shared<Act>(*context, "token_renewed", "RenewToken");
  return write_call(
      services_, context, {}, "RenewToken",
      [=](WriteContext& write, const Caller& caller) {
        const std::string key_id = key_id_of(*context);
        if (key_id.empty())
          throw Refused(Refusal::kFailedPrecondition, wire::reason::kWrongState,
                        "this call carries no token of a file, and only such a token is renewed; "
                        "on a Unix socket nothing is to be done");
        const std::int64_t now_ms = write.now.wall_ms;
        const Principal owner = require_active(write.access, caller.principal_id);
        const Granted token = grant_token(write.access, owner, caller.scopes, now_ms);
        response->set_token(token.text);
        *response->mutable_expires() = token.expires;
        write.access.end_token(key_id, now_ms + kOverlapMs, 0);
        act->record(write, caller.name, {.names = {key_id}});
        *tables = write.access.all();
      },
      {.committed = [=, this] {
        services_.directory.replace(*tables);
        act->log_committed();
      }});
}

grpc::ServerUnaryReactor* AccessServiceApi::CreateCode(grpc::CallbackServerContext* context,
                                                       const v1::CreateCodeRequest* request,
                                                       v1::CreateCodeResponse* response) {
  auto act = std::make_shared<Act>(*context, "admin", "CreateCode");
  return write_call(
      services_, context, violations_of_code(*request), "CreateCode",
      [=, this](WriteContext& write, const Caller& caller) {
        const auto owner = write.access.find(request->principal());
        if (!owner)
          throw Refused(Refusal::kNotFound, wire::reason::kPrincipal,
                        "there is no principal " + wire::checks::shown(request->principal()) +
                            "; make it first: quasi admin user NAME --role ROLE");
        const TokenScopes scopes = granted_scopes(request->scopes(), *owner);
        wire::JoinCode code = place_of(services_.options, owner->role);
        const NewCode made = make_code();
        const std::int64_t lifetime_ms = to_milliseconds(request->lifetime());
        const std::int64_t now_ms = write.now.wall_ms;
        const std::int64_t expires_ms = now_ms + (lifetime_ms > 0 ? lifetime_ms : kCodeMs);
        write.access.insert_code({.secret_sha256 = made.secret_sha256,
                                  .principal_id = owner->id,
                                  .created_ms = now_ms,
                                  .expires_ms = expires_ms,
                                  .scopes = scopes});
        code.secret = made.secret;
        response->set_code(wire::to_text(code));
        *response->mutable_expires() = to_timestamp(expires_ms);
        act->record(write, caller.name,
                    {.names = {owner->name}, .detail = "scopes=" + words_of(scopes)});
      },
      {.committed = [act] { act->log_committed(); }});
}

}  // namespace quasi::server
