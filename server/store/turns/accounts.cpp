// Begin here: server/store/turns reads and writes the accounts of principals and tenants.

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

std::optional<std::int64_t> optional_integer(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return row.integer(column);
}

Allowance read_allowance(const Statement& row) {
  return {.shares = optional_integer(row, 0),
          .unfinished_jobs = optional_integer(row, 1),
          .running_gpus = optional_integer(row, 2),
          .gpu_ms = optional_integer(row, 3),
          .stored_bytes = optional_integer(row, 4)};
}

std::int64_t first_integer(const Statement& row) { return row.integer(0); }

}  // namespace

Allowance SqliteStore::allowance_of(const Account& account) {
  Statement& statement =
      account.principal_id
          ? sql("SELECT shares, unfinished_jobs, running_gpus, gpu_ms, stored_bytes "
                "FROM principal_allowances WHERE principal_id=?")
                .bind(*account.principal_id)
          : sql("SELECT shares, unfinished_jobs, running_gpus, gpu_ms, stored_bytes "
                "FROM tenant_allowances WHERE tenant=?")
                .bind(account.tenant);
  return one<Allowance>(statement, read_allowance).value_or(Allowance{});
}

std::vector<std::pair<Account, Allowance>> SqliteStore::allowances() {
  auto list = all<std::pair<Account, Allowance>>(
      sql("SELECT shares, unfinished_jobs, running_gpus, gpu_ms, stored_bytes, principal_id "
          "FROM principal_allowances")
          .bind(),
      [](const Statement& row) {
        return std::pair(Account::of_principal(row.integer(5)), read_allowance(row));
      });
  auto tenants = all<std::pair<Account, Allowance>>(
      sql("SELECT shares, unfinished_jobs, running_gpus, gpu_ms, stored_bytes, tenant "
          "FROM tenant_allowances")
          .bind(),
      [](const Statement& row) {
        return std::pair(Account::of_tenant(row.text(5)), read_allowance(row));
      });
  list.insert(list.end(), tenants.begin(), tenants.end());
  return list;
}

void SqliteStore::save_allowance(const Account& account, const Allowance& allowance) {
  Statement& statement =
      sql(account.principal_id ? "INSERT OR REPLACE INTO principal_allowances VALUES (?,?,?,?,?,?)"
                               : "INSERT OR REPLACE INTO tenant_allowances VALUES (?,?,?,?,?,?)");
  if (account.principal_id)
    statement.bind(*account.principal_id, allowance.shares, allowance.unfinished_jobs,
                   allowance.running_gpus, allowance.gpu_ms, allowance.stored_bytes);
  else
    statement.bind(account.tenant, allowance.shares, allowance.unfinished_jobs,
                   allowance.running_gpus, allowance.gpu_ms, allowance.stored_bytes);
  statement.run();
}

void SqliteStore::count_new_jobs(const Scope& scope, std::int64_t n_jobs) {
  sql("INSERT INTO usage_totals (owner_id, tenant, unfinished_jobs) VALUES (?,?,?) "
      "ON CONFLICT DO UPDATE SET unfinished_jobs = unfinished_jobs + excluded.unfinished_jobs")
      .run(scope.principal_id, scope.tenant, n_jobs);
}

Used SqliteStore::jobs_of_account(const Account& account) {
  Statement& statement =
      account.principal_id
          ? sql("SELECT coalesce(sum(unfinished_jobs), 0), coalesce(sum(running_gpus), 0), "
                "coalesce(sum(reserved_gpu_ms), 0) FROM usage_totals WHERE owner_id=?")
                .bind(*account.principal_id)
          : sql("SELECT coalesce(sum(unfinished_jobs), 0), coalesce(sum(running_gpus), 0), "
                "coalesce(sum(reserved_gpu_ms), 0) FROM usage_totals WHERE tenant=?")
                .bind(account.tenant);
  return one<Used>(statement,
                   [](const Statement& row) {
                     return Used{.unfinished_jobs = row.integer(0),
                                 .running_gpus = row.integer(1),
                                 .reserved_gpu_ms = row.integer(2)};
                   })
      .value_or(Used{});
}

std::int64_t SqliteStore::gpu_ms_of_account(const Account& account, std::int64_t first_day) {
  Statement& statement = account.principal_id
                             ? sql("SELECT sum(gpu_ms) FROM usage_days WHERE owner_id=? AND day>=?")
                                   .bind(*account.principal_id, first_day)
                             : sql("SELECT sum(gpu_ms) FROM usage_days WHERE tenant=? AND day>=?")
                                   .bind(account.tenant, first_day);
  return one<std::int64_t>(statement, first_integer).value_or(0);
}

std::vector<DayUse> SqliteStore::day_uses(std::int64_t first_day) {
  return all<DayUse>(
      sql("SELECT owner_id, tenant, day, slot_ms FROM usage_days WHERE day>=?").bind(first_day),
      [](const Statement& row) {
        return DayUse{.owner_id = row.integer(0),
                      .tenant = row.text(1),
                      .day = row.integer(2),
                      .slot_ms = row.integer(3)};
      });
}

std::int64_t SqliteStore::bytes_of_account(const Account& account) {
  Statement& statement =
      account.principal_id
          ? sql("SELECT bytes FROM stored_bytes WHERE principal_id=?").bind(*account.principal_id)
          : sql("SELECT sum(s.bytes) FROM principals p JOIN stored_bytes s ON s.principal_id=p.id "
                "WHERE p.tenant=? AND p.role<>5")
                .bind(account.tenant);
  return one<std::int64_t>(statement, first_integer).value_or(0);
}

}  // namespace quasi::server
