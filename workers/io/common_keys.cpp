#include "workers/io/common_keys.hpp"

#include <omp.h>

#include "workers/backend/team/blas_threads.hpp"

namespace quasi {

void read_common_keys(TableReader& reader, CommonKeys* keys) {
  keys->checkpoint_interval_s =
      reader.number("checkpoint_interval_s", keys->checkpoint_interval_s, 0.0, 1e6);
  keys->memory_budget_mib = reader.number("memory_budget_mib", keys->memory_budget_mib, 0.0, 1e9);
  keys->device_memory_fraction =
      reader.number("device_memory_fraction", keys->device_memory_fraction, 0.0, 1.0);
  keys->threads = reader.integer("threads", keys->threads, 0, 4096);
}

std::int64_t memory_budget_bytes(const CommonKeys& keys, const Device& device,
                                 std::int64_t job_bytes) {
  constexpr double kMib_bytes = 1048576.0;
  if (keys.memory_budget_mib > 0.0)
    return static_cast<std::int64_t>(keys.memory_budget_mib * kMib_bytes);
  if (keys.device_memory_fraction > 0.0)
    return static_cast<std::int64_t>(keys.device_memory_fraction *
                                     static_cast<double>(device.memory_bytes));
  return job_bytes;
}

void use_threads(const CommonKeys& keys) {
  if (keys.threads > 0) omp_set_num_threads(keys.threads);
  use_one_blas_thread();
}

}  // namespace quasi
