#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace quasi::test {

/// Largest use of an account at any moment.
struct PeakUse {
  std::int64_t unfinished_jobs = 0;  ///< jobs that wait or run
  std::int64_t running_gpus = 0;     ///< GPUs of jobs that a worker has
};

/// The use of a server by its users and tenants, made again from the changes of all jobs in the
/// order of their commits. It does not read the counts by which the server checks quotas.
struct TurnsHistory {
  std::map<std::int64_t, PeakUse> of_user;  ///< by the number of the principal
  std::map<std::string, PeakUse> of_tenant;
  /// GPU-seconds that each tenant got while every tenant had jobs that waited.
  std::map<std::string, double> gpu_s_in_contest;
  double contest_s = 0.0;  ///< length of that time
  /// GPU-seconds that each user of a tenant got while every user of it had a job that waited.
  std::map<std::string, std::map<std::int64_t, double>> user_gpu_s_in_contest;
};

/// Reads the events of a database that no server has open.
/// @param tenants  the tenants that contest the GPUs
/// @param least_waiting  number of jobs that each of them must have waiting in a contest
TurnsHistory read_turns_history(const std::filesystem::path& database,
                                const std::vector<std::string>& tenants,
                                std::int64_t least_waiting);

}  // namespace quasi::test
