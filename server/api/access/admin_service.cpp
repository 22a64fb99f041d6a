#include "server/api/access/admin_service.hpp"

#include <memory>

#include "proto/wire/limits.hpp"
#include "server/api/access/act.hpp"
#include "server/api/access/token_grants.hpp"
#include "server/api/calls.hpp"
#include "server/api/convert.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;

v1::TokenInfo to_message(const TokenRow& token) {
  v1::TokenInfo info;
  info.set_key_id(token.key_id);
  *info.mutable_created() = to_timestamp(token.created_ms);
  *info.mutable_expires() = to_timestamp(token.expires_ms);
  info.set_revoked(token.revoked_ms > 0);
  add_scopes(token.scopes, *info.mutable_scopes());
  return info;
}

v1::Principal to_message(const Principal& principal) {
  v1::Principal message;
  message.set_name(principal.name);
  message.set_role(static_cast<v1::Role>(principal.role));
  message.set_tenant(principal.tenant);
  if (principal.uid) message.set_uid(static_cast<std::uint32_t>(*principal.uid));
  message.set_disabled(principal.disabled);
  message.set_pool(principal.pool);
  *message.mutable_created() = to_timestamp(principal.created_ms);
  return message;
}

Principal require_principal(AccessStore& access, const std::string& name) {
  const auto found = access.find(name);
  if (!found)
    throw Refused(Refusal::kNotFound, wire::reason::kPrincipal, "there is no principal " + name);
  return *found;
}

/// Returns the values of a principal that an admin sets, as the audit keeps them.
std::string values_of(const Principal& principal) {
  return "role=" + std::string(word_of(principal.role)) + " tenant=" + principal.tenant +
         " uid=" + (principal.uid ? std::to_string(*principal.uid) : "none") +
         " disabled=" + (principal.disabled ? "true" : "false") +
         (principal.pool.empty() ? "" : " pool=" + principal.pool);
}

/// Refuses a user id that another principal has.
void require_free_uid(AccessStore& access, const Principal& principal) {
  for (const Principal& other : access.all().principals)
    if (principal.uid && other.uid == principal.uid && other.id != principal.id)
      throw Refused(
          Refusal::kAlreadyExists, wire::reason::kPrincipal,
          "principal.uid: user id " + std::to_string(*principal.uid) + " belongs to " + other.name);
}

/// Runs a call that changes principals or tokens. The directory of the process gets the new tables
/// after the commit and before the answer.
grpc::ServerUnaryReactor* admin_call(Services& services, grpc::CallbackServerContext* context,
                                     const wire::Violations& violations, const char* method,
                                     std::function<Act::Target(WriteContext&)> body) {
  auto tables = std::make_shared<AccessTables>();
  auto act = std::make_shared<Act>(*context, "admin", method);
  return write_call(services, context, violations, method,
                    [=, body = std::move(body)](WriteContext& write, const Caller& caller) {
                      act->record(write, caller.name, body(write));
                      *tables = write.access.all();
                    },
                    {.committed = [=, &services] {
                      services.directory.replace(*tables);
                      act->log_committed();
                    }});
}

}  // namespace

grpc::ServerUnaryReactor* AdminServiceApi::SavePrincipal(grpc::CallbackServerContext* context,
                                                         const v1::SavePrincipalRequest* request,
                                                         v1::SavePrincipalResponse* response) {
  return admin_call(
      services_, context, violations_of(*request), "SavePrincipal",
      [request, response](WriteContext& write) {
        const v1::Principal& wanted = request->principal();
        Principal principal =
            write.access.find(wanted.name())
                .value_or(Principal{.name = wanted.name(), .created_ms = write.now.wall_ms});
        principal.role = static_cast<Role>(wanted.role());
        principal.tenant = wanted.tenant();
        principal.uid.reset();
        if (wanted.has_uid()) principal.uid = wanted.uid();
        principal.disabled = wanted.disabled();
        principal.pool = wanted.pool();
        require_free_uid(write.access, principal);
        *response->mutable_principal() = to_message(write.access.save(principal));
        return Act::Target{.names = {principal.name}, .detail = values_of(principal)};
      });
}

grpc::ServerUnaryReactor* AdminServiceApi::ListPrincipals(grpc::CallbackServerContext* context,
                                                          const v1::ListPrincipalsRequest* request,
                                                          v1::ListPrincipalsResponse* response) {
  return write_call(services_, context, violations_of(*request), "ListPrincipals",
                    [response](WriteContext& write) {
                      const AccessTables tables = write.access.all();
                      for (const Principal& principal : tables.principals) {
                        v1::Principal& message = *response->add_principals();
                        message = to_message(principal);
                        for (auto token = tables.tokens.rbegin(); token != tables.tokens.rend();
                             ++token)
                          if (token->principal_id == principal.id &&
                              message.tokens_size() < static_cast<int>(limits::kTokensShown))
                            *message.add_tokens() = to_message(*token);
                      }
                    });
}

grpc::ServerUnaryReactor* AdminServiceApi::CreateToken(grpc::CallbackServerContext* context,
                                                       const v1::CreateTokenRequest* request,
                                                       v1::CreateTokenResponse* response) {
  return admin_call(services_, context, violations_of(*request), "CreateToken",
                    [request, response](WriteContext& write) {
                      const Principal owner = require_principal(write.access, request->principal());
                      std::int64_t lifetime_ms = to_milliseconds(request->lifetime());
                      if (lifetime_ms == 0) lifetime_ms = usual_token_days(owner.role) * kDayMs;
                      const NewToken token = make_token();
                      const TokenRow row{.key_id = token.key_id,
                                         .secret_sha256 = token.secret_sha256,
                                         .principal_id = owner.id,
                                         .created_ms = write.now.wall_ms,
                                         .expires_ms = write.now.wall_ms + lifetime_ms,
                                         .scopes = granted_scopes(request->scopes(), owner)};
                      write.access.insert_token(row);
                      response->set_token(token.text);
                      *response->mutable_info() = to_message(row);
                      return Act::Target{.names = {token.key_id},
                                         .detail = "of=" + owner.name +
                                                   " expires_ms=" + std::to_string(row.expires_ms) +
                                                   " scopes=" + words_of(row.scopes)};
                    });
}

grpc::ServerUnaryReactor* AdminServiceApi::RevokeToken(grpc::CallbackServerContext* context,
                                                       const v1::RevokeTokenRequest* request,
                                                       v1::RevokeTokenResponse*) {
  return admin_call(services_, context, violations_of(*request), "RevokeToken",
                    [request](WriteContext& write) {
                      const std::int64_t delay_ms = to_milliseconds(request->delay());
                      const std::int64_t now_ms = write.now.wall_ms;
                      if (!write.access.end_token(request->key_id(), now_ms + delay_ms,
                                                  delay_ms > 0 ? 0 : now_ms))
                        throw Refused(Refusal::kNotFound, wire::reason::kToken,
                                      "there is no token with the key id " + request->key_id());
                      return Act::Target{.names = {request->key_id()},
                                         .detail = "delay_ms=" + std::to_string(delay_ms)};
                    });
}

}  // namespace quasi::server
