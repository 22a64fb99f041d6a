#pragma once

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

/// Returns the job whose result this one may take.
std::optional<RowId> result_for(Store& store, const ResultCacheOptions& options, const JobRow& job);
/// Returns the running jobs whose result this one may take when they succeed.
std::vector<JobRow> running_equals_of(Store& store, const ResultCacheOptions& options,
                                      const JobRow& job);
/// Returns the waiting jobs that may take the result of this one.
std::vector<JobRow> waiting_equals_of(Store& store, const ResultCacheOptions& options,
                                      const JobRow& job);

/// Keeps the result of a job that has just succeeded.
/// @param worker_version  of the worker that computed it; "" if unknown
void keep_result(Store& store, const ResultCacheOptions& options, const JobRow& job,
                 const std::string& worker_version);

}  // namespace quasi::server
