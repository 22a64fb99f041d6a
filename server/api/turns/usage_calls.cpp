// The calls that show the use of accounts and set their quotas.

#include <set>

#include "proto/wire/limits.hpp"
#include "server/api/access/act.hpp"
#include "server/api/access/admin_service.hpp"
#include "server/api/job_service.hpp"

namespace quasi::server {
namespace {

constexpr double kHourMs = 3.6e6;

v1::Quotas to_message(const Allowance& allowance) {
  v1::Quotas quotas;
  if (allowance.shares) quotas.set_shares(static_cast<std::uint32_t>(*allowance.shares));
  if (allowance.unfinished_jobs)
    quotas.set_jobs(static_cast<std::uint64_t>(*allowance.unfinished_jobs));
  if (allowance.running_gpus)
    quotas.set_running_gpus(static_cast<std::uint64_t>(*allowance.running_gpus));
  if (allowance.gpu_ms) quotas.set_gpu_hours(static_cast<double>(*allowance.gpu_ms) / kHourMs);
  if (allowance.stored_bytes)
    quotas.set_stored_bytes(static_cast<std::uint64_t>(*allowance.stored_bytes));
  return quotas;
}

Allowance to_allowance(const v1::Quotas& quotas) {
  Allowance allowance;
  if (quotas.has_shares()) allowance.shares = quotas.shares();
  if (quotas.has_jobs()) allowance.unfinished_jobs = static_cast<std::int64_t>(quotas.jobs());
  if (quotas.has_running_gpus())
    allowance.running_gpus = static_cast<std::int64_t>(quotas.running_gpus());
  if (quotas.has_gpu_hours())
    allowance.gpu_ms = static_cast<std::int64_t>(quotas.gpu_hours() * kHourMs + 0.5);
  if (quotas.has_stored_bytes())
    allowance.stored_bytes = static_cast<std::int64_t>(quotas.stored_bytes());
  return allowance;
}

/// Returns the use of an account beside its quotas.
v1::AccountUsage usage_of(WriteContext& write, const Account& account, const std::string& principal,
                          const std::string& tenant) {
  const AccountView view = write.queue.account(account, write.now);
  v1::AccountUsage usage;
  usage.set_principal(principal);
  usage.set_tenant(tenant);
  usage.set_jobs(static_cast<std::uint64_t>(view.used.unfinished_jobs));
  usage.set_running_gpus(static_cast<std::uint64_t>(view.used.running_gpus));
  usage.set_gpu_hours(static_cast<double>(view.used.gpu_ms) / kHourMs);
  usage.set_reserved_gpu_hours(static_cast<double>(view.used.reserved_gpu_ms) / kHourMs);
  usage.set_stored_bytes(static_cast<std::uint64_t>(view.used.stored_bytes));
  *usage.mutable_quotas() = to_message(view.in_effect);
  *usage.mutable_own_quotas() = to_message(view.stored);
  return usage;
}

/// Adds the accounts of all people and of their tenants.
void add_all_accounts(WriteContext& write, v1::GetUsageResponse& response) {
  std::set<std::string> tenants;
  for (const Principal& principal : write.access.all().principals) {
    if (principal.role == Role::kWorker) continue;
    tenants.insert(principal.tenant);
    *response.add_accounts() =
        usage_of(write, Account::of_principal(principal.id), principal.name, principal.tenant);
  }
  for (const std::string& tenant : tenants)
    *response.add_accounts() = usage_of(write, Account::of_tenant(tenant), "", tenant);
}

/// Returns the stored values as the audit keeps them.
std::string values_of(const v1::Quotas& quotas) {
  std::string text = quotas.ShortDebugString();
  return text.empty() ? "defaults" : text;
}

/// An account and the tenant that it is or belongs to.
struct NamedAccount {
  Account account;
  std::string tenant;
};

/// Returns the account that a request names. @throws Refused NOT_FOUND / PRINCIPAL
NamedAccount account_of(WriteContext& write, const v1::SaveQuotasRequest& request) {
  if (!request.tenant().empty())
    return {.account = Account::of_tenant(request.tenant()), .tenant = request.tenant()};
  const auto found = write.access.find(request.principal());
  if (!found)
    throw Refused(Refusal::kNotFound, wire::reason::kPrincipal,
                  "there is no principal " + request.principal());
  return {.account = Account::of_principal(found->id), .tenant = found->tenant};
}

}  // namespace

grpc::ServerUnaryReactor* JobServiceApi::GetUsage(grpc::CallbackServerContext* context,
                                                  const v1::GetUsageRequest* request,
                                                  v1::GetUsageResponse* response) {
  return write_call(
      services_, context, violations_of(*request), "GetUsage",
      [request, response](WriteContext& write, const Caller& caller) {
        if (request->all() && caller.role < Role::kOperator)
          throw Refused(Refusal::kPermissionDenied, wire::reason::kRoleRequired,
                        "all: is true, and the role " + std::string(word_of(caller.role)) +
                            " sees its own account and that of its tenant; ask an operator");
        if (request->all()) return add_all_accounts(write, *response);
        *response->add_accounts() =
            usage_of(write, Account::of_principal(caller.principal_id), caller.name, caller.tenant);
        *response->add_accounts() =
            usage_of(write, Account::of_tenant(caller.tenant), "", caller.tenant);
      });
}

grpc::ServerUnaryReactor* AdminServiceApi::SaveQuotas(grpc::CallbackServerContext* context,
                                                      const v1::SaveQuotasRequest* request,
                                                      v1::SaveQuotasResponse* response) {
  auto act = std::make_shared<Act>(*context, "admin", "SaveQuotas");
  return write_call(
      services_, context, violations_of(*request), "SaveQuotas",
      [act, request, response](WriteContext& write, const Caller& caller) {
        const auto [account, tenant] = account_of(write, *request);
        write.queue.apply(
            SetAllowance{.account = account, .allowance = to_allowance(request->quotas())},
            write.now);
        *response->mutable_account() = usage_of(write, account, request->principal(), tenant);
        const std::string name =
            request->tenant().empty() ? request->principal() : "tenant " + request->tenant();
        act->record(write, caller.name, {.names = {name}, .detail = values_of(request->quotas())});
      },
      {.committed = [act] { act->log_committed(); }});
}

}  // namespace quasi::server
