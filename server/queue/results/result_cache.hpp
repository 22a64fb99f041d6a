#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/queue/store.hpp"

/// The rules of the result cache: which job takes the result of which other one. A hit is found at
/// the submission, and a result is kept with its success.
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
};

/// Sets `taken_from` of the jobs whose action has a result that they may take.
void find_results(Store& store, const ResultCacheOptions& options, const Scope& scope,
                  std::vector<NewJob>& jobs);

/// Keeps the result of a job that has just succeeded.
/// @param worker_version  of the worker that computed it; "" if unknown
void keep_result(Store& store, const ResultCacheOptions& options, const JobRow& job,
                 const std::string& worker_version);

}  // namespace quasi::server
