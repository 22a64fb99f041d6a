#include "server/api/access/token_grants.hpp"

#include "proto/wire/status.hpp"
#include "server/queue/refused.hpp"

namespace quasi::server {

TokenScopes granted_scopes(const google::protobuf::RepeatedField<int>& numbers,
                           const Principal& owner) {
  if (numbers.empty()) return TokenScopes::every();
  if (owner.role == Role::kWorker)
    throw Refused(Refusal::kInvalidArgument, wire::reason::kFieldInvalid,
                  "scopes: " + owner.name +
                      " is a worker, whose tokens have every scope; bind it "
                      "to a pool instead: quasi admin user " +
                      owner.name + " --pool POOL");
  TokenScopes scopes;
  for (const int scope : numbers) scopes.add(static_cast<TokenScope>(scope));
  return scopes;
}

}  // namespace quasi::server
