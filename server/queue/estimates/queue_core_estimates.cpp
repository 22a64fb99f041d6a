// Learns from the memory that jobs really took.

#include <algorithm>

#include "server/queue/queue_core.hpp"

namespace quasi::server {

void QueueCore::learn_memory(const JobRow& job, double ratio) {
  store_.add_estimate_ratio(job.kind, job.pool, ratio);
  fleet_.set_ratios(store_.estimate_ratios());
}

void QueueCore::note_memory(Held& held, std::int64_t gpu_bytes) {
  // Small changes are not worth a write.
  constexpr std::int64_t kStepBytes = std::int64_t{64} << 20;
  if (gpu_bytes < held.attempt.usage.peak_gpu_bytes + kStepBytes) return;
  held.attempt.usage.peak_gpu_bytes = gpu_bytes;
  store_.update_attempt(held.attempt);
}

}  // namespace quasi::server
