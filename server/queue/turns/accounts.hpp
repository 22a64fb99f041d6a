#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace quasi::server {

/// Names the account of a principal or of a tenant. Use and quotas are counted for each.
struct Account {
  std::optional<std::int64_t> principal_id;  ///< empty: the account of the tenant
  std::string tenant;                        ///< empty: the account of the principal

  static Account of_principal(std::int64_t id) { return {.principal_id = id, .tenant = {}}; }
  static Account of_tenant(std::string name) {
    return {.principal_id = {}, .tenant = std::move(name)};
  }
  bool operator==(const Account&) const = default;
};

/// Limits of an account and its part of the machines. An empty value stands for the default of the
/// server in a stored allowance, and for no limit in an effective one.
struct Allowance {
  std::optional<std::int64_t> shares;           ///< 1 to 1,000,000
  std::optional<std::int64_t> unfinished_jobs;  ///< jobs that wait or run
  std::optional<std::int64_t> running_gpus;
  std::optional<std::int64_t> gpu_ms;  ///< in the last 30 days, with time limits of running jobs
  std::optional<std::int64_t> stored_bytes;

  bool operator==(const Allowance&) const = default;
};

/// Use of an account at present.
struct Used {
  std::int64_t unfinished_jobs = 0;
  std::int64_t running_gpus = 0;
  std::int64_t reserved_gpu_ms = 0;  ///< time limits of running attempts, times their GPUs
  std::int64_t gpu_ms = 0;           ///< of the attempts that ended on the last 30 days
  std::int64_t stored_bytes = 0;

  bool operator==(const Used&) const = default;
};

/// Use of slots by an owner on one day.
struct DayUse {
  std::int64_t owner_id = 0;
  std::string tenant;
  std::int64_t day = 0;  ///< days since 1970
  std::int64_t slot_ms = 0;
};

/// Names the waiting jobs of one owner in a pool.
struct OwnerQueue {
  std::string pool;
  std::string tenant;
  std::int64_t owner_id = 0;
};

/// Bounds of a search for jobs behind the heads of a queue.
struct HeadFilter {
  std::int64_t most_bytes = 0;       ///< memory that a job may need on a GPU
  std::int64_t most_runtime_ms = 0;  ///< time limit that a job may have
  std::int64_t most_stated_ms = 0;   ///< time limit of a job that is expected to end in time
  std::int64_t time_left_ms = 0;     ///< of the worker, as in has_time_for()
  std::int32_t most_read = 0;        ///< number of jobs that are read
};

/// Days over which GPU time is summed, today included.
constexpr std::int64_t kUsageDays = 30;

/// First of these days, in days since 1970.
inline std::int64_t first_usage_day(std::int64_t wall_ms) {
  return wall_ms / 86'400'000 - kUsageDays + 1;
}

}  // namespace quasi::server
