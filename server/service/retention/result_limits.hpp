#pragma once

#include <atomic>
#include <cstdint>

#include "server/service/housekeeping.hpp"
#include "server/store/retention/excess_results.hpp"

namespace quasi::server {

/// Returns the limits of the configuration at the time `now_ms`.
ResultLimits result_limits(const RetentionOptions& options, std::int64_t now_ms);

/// Deletes one job as `quasi delete` does, in the writer's transaction. A job that was deleted in
/// the meantime is left as it is.
void delete_excess_result(WriteContext& write, const ExcessResult& result);

/// Deletes the oldest ended jobs while their files hold more than the limits. A reader chooses
/// them and the writer deletes them in small steps. The next collection removes their files. The
/// call returns at once; `busy` is true until the work is done.
void delete_excess_results(Readers& readers, Writer& writer, const RetentionOptions& options,
                           std::int64_t now_ms, std::atomic<bool>& busy);

}  // namespace quasi::server
