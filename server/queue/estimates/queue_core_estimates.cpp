// Learns from the memory and the time that jobs really took.

#include <algorithm>

#include "server/queue/queue_core.hpp"

namespace quasi::server {

void QueueCore::learn(Quantity quantity, const JobRow& job, double ratio) {
  store_.add_estimate_ratio(quantity, job.kind, job.pool, ratio);
  fleet_.learn(store_.estimate_ratios_of(quantity, job.kind, job.pool));
}

void QueueCore::learn_from(const JobRow& job, const AttemptRow& attempt) {
  const auto stated_bytes = static_cast<double>(job.memory_bytes);
  if (attempt.gpus > 0 && job.memory_bytes > 0 && attempt.usage.peak_gpu_bytes > 0)
    learn(Quantity::kGpuMemory, job,
          static_cast<double>(attempt.usage.peak_gpu_bytes) / stated_bytes);
  // A later attempt may have gone on from a checkpoint, so its time is not that of the whole job.
  const double stated_s = 1e-3 * static_cast<double>(job.max_runtime_ms);
  if (attempt.number == 1 && job.max_runtime_ms > 0 && attempt.usage.wall_seconds > 0.0)
    learn(Quantity::kTime, job, attempt.usage.wall_seconds / stated_s);
}

void QueueCore::note_memory(Held& held, std::int64_t gpu_bytes) {
  // Small changes are not worth a write.
  constexpr std::int64_t kStepBytes = std::int64_t{64} << 20;
  if (gpu_bytes < held.attempt.usage.peak_gpu_bytes + kStepBytes) return;
  held.attempt.usage.peak_gpu_bytes = gpu_bytes;
  store_.update_attempt(held.attempt);
}

}  // namespace quasi::server
