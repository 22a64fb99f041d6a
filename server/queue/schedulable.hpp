#pragma once

#include <string>
#include <vector>

#include "server/queue/rows.hpp"

namespace quasi::server {

enum class Chance : std::uint8_t {
  kFits,      ///< a known device, or set of devices of one worker, is large enough
  kNone,      ///< no worker of its pool is known that runs its kind on such a device: it may come
  kTooLarge,  ///< such devices are known, and all are too small or too few
};

struct Prospect {
  Chance chance = Chance::kFits;
  std::string field;  ///< of the job's resources: "gpu_mem_bytes", "gpus"; "" unless kTooLarge
  std::string why;    ///< "" for kFits
};

/// What a job may hope for from the workers that ever registered, whether they live or not: who is
/// away today may be back tomorrow, but a device never grows.
Prospect prospect_of(const JobRow& job, const std::vector<WorkerRow>& workers);

}  // namespace quasi::server
