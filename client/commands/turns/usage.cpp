#include "client/commands/turns/usage.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "client/views/table.hpp"

namespace quasi::client {
namespace {

Json quotas_json(const v1::Quotas& quotas) {
  return {{"shares", quotas.has_shares() ? Json(quotas.shares()) : Json()},
          {"jobs", quotas.has_jobs() ? Json(quotas.jobs()) : Json()},
          {"running_gpus", quotas.has_running_gpus() ? Json(quotas.running_gpus()) : Json()},
          {"gpu_hours", quotas.has_gpu_hours() ? Json(quotas.gpu_hours()) : Json()},
          {"stored_bytes", quotas.has_stored_bytes() ? Json(quotas.stored_bytes()) : Json()}};
}

Json account_json(const v1::AccountUsage& account) {
  return {{"principal", account.principal().empty() ? Json() : Json(account.principal())},
          {"tenant", account.tenant()},
          {"jobs", account.jobs()},
          {"running_gpus", account.running_gpus()},
          {"gpu_hours", account.gpu_hours()},
          {"reserved_gpu_hours", account.reserved_gpu_hours()},
          {"stored_bytes", account.stored_bytes()},
          {"quotas", quotas_json(account.quotas())},
          {"own_quotas", quotas_json(account.own_quotas())}};
}

std::string hours(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// Writes a value beside its quota, e.g. "3 / 10".
std::string beside(const std::string& value, bool has_quota, const std::string& quota) {
  return has_quota ? value + " / " + quota : value;
}

void print_accounts(Console& console, const std::vector<v1::AccountUsage>& accounts) {
  if (console.json()) {
    Json list = Json::array();
    for (const v1::AccountUsage& account : accounts) list.push_back(account_json(account));
    console.document({{"accounts", list}});
    return;
  }
  Table table({{"ACCOUNT"},
               {"JOBS", Table::Align::kRight},
               {"GPUS", Table::Align::kRight},
               {"GPU-HOURS IN 30 DAYS", Table::Align::kRight},
               {"STORED", Table::Align::kRight},
               {"SHARES", Table::Align::kRight}});
  for (const v1::AccountUsage& account : accounts) {
    const v1::Quotas& quotas = account.quotas();
    table.add(
        {account.principal().empty() ? "tenant " + printable(account.tenant())
                                     : printable(account.principal()),
         beside(std::to_string(account.jobs()), quotas.has_jobs(), std::to_string(quotas.jobs())),
         beside(std::to_string(account.running_gpus()), quotas.has_running_gpus(),
                std::to_string(quotas.running_gpus())),
         beside(hours(account.gpu_hours()), quotas.has_gpu_hours(), hours(quotas.gpu_hours())),
         beside(readable_bytes(account.stored_bytes()), quotas.has_stored_bytes(),
                readable_bytes(quotas.stored_bytes())),
         std::to_string(quotas.has_shares() ? quotas.shares() : 100)});
  }
  console.data(table.text());
}

v1::AccountUsage account_of(Session& session, const QuotaOptions& options) {
  v1::GetUsageRequest request;
  request.set_all(true);
  const v1::GetUsageResponse answer = session.server.call(&Jobs::GetUsage, request);
  for (const v1::AccountUsage& account : answer.accounts())
    if (options.kind == "user" ? account.principal() == options.name
                               : account.principal().empty() && account.tenant() == options.name)
      return account;
  throw Failure(ExitStatus::kNotFound, "there is no " + options.kind + " '" + options.name + "'",
                "see them: quasi admin users");
}

/// Reads a number of a flag.
double number_of(const std::string& text, const std::string& flag) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0.0 && value < 9e15))
    throw Failure(ExitStatus::kUsage,
                  flag + ": must be a number of at least 0, or 'default', got '" + text + "'",
                  "write it like: quasi admin quota user ada " + flag + " 100");
  return value;
}

/// Changes one value if its flag was given. @return true if it was
template <class Set, class Clear>
bool change(const std::string& text, const std::string& flag, const Set& set, const Clear& clear) {
  if (text.empty()) return false;
  if (text == "default")
    clear();
  else
    set(number_of(text, flag));
  return true;
}

}  // namespace

ExitStatus usage(Session& session, const UsageOptions& options) {
  v1::GetUsageRequest request;
  request.set_all(options.all);
  const v1::GetUsageResponse answer = session.server.call(&Jobs::GetUsage, request);
  print_accounts(session.console, {answer.accounts().begin(), answer.accounts().end()});
  return ExitStatus::kOk;
}

ExitStatus quota(Session& session, const QuotaOptions& options) {
  v1::AccountUsage account = account_of(session, options);
  v1::SaveQuotasRequest request;
  (options.kind == "user" ? *request.mutable_principal() : *request.mutable_tenant()) =
      options.name;
  v1::Quotas& quotas = *request.mutable_quotas();
  quotas = account.own_quotas();
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value + 0.5); };
  bool is_changed = change(
      options.shares, "--shares",
      [&](double value) { quotas.set_shares(static_cast<std::uint32_t>(value + 0.5)); },
      [&] { quotas.clear_shares(); });
  is_changed |= change(
      options.jobs, "--jobs", [&](double value) { quotas.set_jobs(whole(value)); },
      [&] { quotas.clear_jobs(); });
  is_changed |= change(
      options.gpus, "--gpus", [&](double value) { quotas.set_running_gpus(whole(value)); },
      [&] { quotas.clear_running_gpus(); });
  is_changed |= change(
      options.gpu_hours, "--gpu-hours", [&](double value) { quotas.set_gpu_hours(value); },
      [&] { quotas.clear_gpu_hours(); });
  is_changed |= change(
      options.bytes, "--bytes", [&](double value) { quotas.set_stored_bytes(whole(value)); },
      [&] { quotas.clear_stored_bytes(); });
  if (is_changed) account = session.server.call(&Admin::SaveQuotas, request).account();
  print_accounts(session.console, {account});
  return ExitStatus::kOk;
}

}  // namespace quasi::client
