#include "server/queue/schedulable.hpp"

#include <algorithm>
#include <cstdio>

#include "server/queue/fleet.hpp"

namespace quasi::server {
namespace {

std::string gibibytes(std::int64_t bytes) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 1073741824.0);
  return text;
}

}  // namespace

Prospect prospect_of(const JobRow& job, const std::vector<WorkerRow>& workers) {
  const auto wanted = static_cast<std::ptrdiff_t>(std::max(job.gpus, 1));
  std::int64_t largest = -1;      // memory of an eligible device
  std::ptrdiff_t most = 0;        // eligible devices of one worker
  std::ptrdiff_t most_large = 0;  // eligible devices of one worker with enough memory
  for (const WorkerRow& worker : workers) {
    if (worker.pool != job.pool) continue;
    if (std::find(worker.kinds.begin(), worker.kinds.end(), job.kind) == worker.kinds.end())
      continue;
    std::ptrdiff_t devices = 0;
    std::ptrdiff_t large = 0;
    for (const DeviceRow& device : worker.devices) {
      if (!backend_fits(job.device, job.gpus, device.backend)) continue;
      if (wanted > 1 && is_mig_instance(device.id)) {
        most = std::max<std::ptrdiff_t>(most, 1);
        continue;
      }
      ++devices;
      largest = std::max(largest, device.memory_bytes);
      if (job.memory_bytes <= device.memory_bytes) ++large;
    }
    most = std::max(most, devices);
    most_large = std::max(most_large, large);
  }
  if (most == 0)
    return {.chance = Chance::kNone,
            .field = {},
            .why = "no worker of pool " + job.pool +
                   " has registered a device that fits; the job "
                   "would wait for one"};
  if (most_large >= wanted) return {};
  if (most < wanted)
    return {.chance = Chance::kTooLarge,
            .field = "gpus",
            .why = "asks for " + std::to_string(wanted) +
                   " GPUs of one worker; the largest of pool " + job.pool + " has " +
                   std::to_string(most)};
  return {
      .chance = Chance::kTooLarge,
      .field = "gpu_mem_bytes",
      .why = "asks for " + gibibytes(job.memory_bytes) +
             (wanted > 1 ? " on each of " + std::to_string(wanted) + " devices" : " on a device") +
             "; the largest device of pool " + job.pool + " has " + gibibytes(largest)};
}

}  // namespace quasi::server
