#include "proto/wire/checks.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::wire {
namespace {

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > limits::kPrincipalNameBytes) return false;
  if (text.front() < 'a' || text.front() > 'z') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") ==
         std::string_view::npos;
}

void check_name(std::string_view text, const std::string& field, Violations& violations) {
  if (!is_name(text))
    violations.add(field,
                   "must be a lower-case letter and up to 62 of a-z, 0-9, '.', '_', '-', "
                   "got \"" +
                       checks::shown(text) + "\"");
}

}  // namespace

void checks::scopes(const google::protobuf::RepeatedField<int>& scopes, Violations& violations) {
  for (int i = 0; i < scopes.size(); ++i)
    known(scopes[i], v1::TokenScope_IsValid, "READ, SUBMIT, CANCEL, ADMIN",
          "scopes[" + std::to_string(i) + "]", violations);
}

void validate(const v1::SavePrincipalRequest& request, Violations& violations) {
  const v1::Principal& principal = request.principal();
  check_name(principal.name(), "principal.name", violations);
  if (principal.name() == "local")
    violations.add("principal.name", "must not be \"local\", the name of calls without a token");
  checks::known(principal.role(), v1::Role_IsValid, "VIEWER, USER, OPERATOR, ADMIN, WORKER",
                "principal.role", violations);
  check_name(principal.tenant(), "principal.tenant", violations);
  if (principal.has_uid() && principal.uid() == ~std::uint32_t{0})
    violations.add("principal.uid", "must be a user id, got 4294967295, which means none");
  checks::pool(principal.pool(), "principal.pool", violations);
  if (!principal.pool().empty() && principal.role() != v1::ROLE_WORKER)
    violations.add("principal.pool", "must be empty, because only a worker is bound to a pool");
  if (principal.tokens_size() > 0 || principal.has_created())
    violations.add(principal.has_created() ? "principal.created" : "principal.tokens",
                   "must be absent; the server sets it");
}

void validate(const v1::ListPrincipalsRequest&, Violations&) {}

void validate(const v1::CreateTokenRequest& request, Violations& violations) {
  check_name(request.principal(), "principal", violations);
  const auto& lifetime = request.lifetime();
  if (lifetime.seconds() < 0 || lifetime.nanos() < 0 || lifetime.nanos() > 999'999'999 ||
      static_cast<std::uint64_t>(lifetime.seconds()) > limits::kTokenSeconds)
    violations.add("lifetime", "must be 0 s ... " + std::to_string(limits::kTokenSeconds) +
                                   " s, got " + std::to_string(lifetime.seconds()) + " s");
  checks::scopes(request.scopes(), violations);
}

void validate(const v1::RevokeTokenRequest& request, Violations& violations) {
  if (request.key_id().size() != 12)
    violations.add("key_id", "must be the 12 characters after \"qsi_\" of the token, got \"" +
                                 checks::shown(request.key_id()) + "\"");
  checks::duration(request.delay(), "delay", violations);
}

void validate(const v1::GetUsageRequest&, Violations&) {}

void validate(const v1::SaveQuotasRequest& request, Violations& violations) {
  if (request.principal().empty() == request.tenant().empty())
    violations.add("principal", "must be given if, and only if, tenant is not");
  else if (request.tenant().empty())
    check_name(request.principal(), "principal", violations);
  else
    check_name(request.tenant(), "tenant", violations);
  const v1::Quotas& quotas = request.quotas();
  if (quotas.has_shares() && (quotas.shares() < 1 || quotas.shares() > 1'000'000))
    violations.add("quotas.shares", "must be 1...1000000, got " + std::to_string(quotas.shares()));
  const auto check = [&](const char* field, std::uint64_t value) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
    if (value > kMost)
      violations.add(std::string("quotas.") + field,
                     "must be 0..." + std::to_string(kMost) + ", got " + std::to_string(value));
  };
  check("jobs", quotas.jobs());
  check("running_gpus", quotas.running_gpus());
  check("stored_bytes", quotas.stored_bytes());
  if (!(quotas.gpu_hours() >= 0.0 && quotas.gpu_hours() <= 1e9))
    violations.add("quotas.gpu_hours",
                   "must be 0...1e9, got " + std::to_string(quotas.gpu_hours()));
}

}  // namespace quasi::wire
