#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/store.hpp"

/// The rules of the result cache: which job takes the result of which other one. A hit is found at
/// the submission or when the job's turn comes, and a result is kept with its success.
namespace quasi::server {

/// The jobs that share results with each other.
enum class ResultSharing : std::uint8_t {
  kNone,
  kOwner,   ///< those of one principal
  kTenant,  ///< those of one tenant. A hit tells its submitter that a member had the result.
};

struct ResultCacheOptions {
  ResultSharing sharing = ResultSharing::kTenant;
  /// Results of workers of another version are not kept, because their epochs may differ.
  std::string version = QUASI_VERSION;
  /// Digest of the action of a job once the inputs that other jobs make are known. The spec is
  /// opaque in this room. Without the function such jobs share no results.
  std::function<std::string(const std::string& spec, const std::vector<JobInput>& inputs)>
      action_of = {};
};

/// Equal jobs that one transaction reads or moves.
inline constexpr std::size_t kMostEquals = 256;

/// Returns the action of a job with the jobs that share it, whatever its policy is.
SharedAction shared_action_of(const ResultCacheOptions& options, const JobRow& job);
/// Returns the job whose result this one may take.
std::optional<RowId> result_for(Store& store, const ResultCacheOptions& options, const JobRow& job);
/// True if a worker of this version has an equal job that offers its result.
bool an_equal_runs(Store& store, const ResultCacheOptions& options, const JobRow& job);
/// Returns the queued equal jobs, oldest first, at most `kMostEquals`.
std::vector<JobRow> queued_equals(Store& store, const ResultCacheOptions& options,
                                  const JobRow& job);
/// True if one of these queued jobs is granted before the job on any worker: it waits in the same
/// queue for the same device with the same limits.
bool one_comes_first(const std::vector<JobRow>& queued, const JobRow& job);
/// True if a new job waits for the result of an equal one that runs or comes first.
bool waits_for_an_equal(Store& store, const ResultCacheOptions& options, const JobRow& job);

/// Keeps the result of a job that has just succeeded.
/// @param worker_version  of the worker that computed it; "" if unknown
void keep_result(Store& store, const ResultCacheOptions& options, const JobRow& job,
                 const std::string& worker_version);

}  // namespace quasi::server
