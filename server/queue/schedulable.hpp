#pragma once

#include <string>
#include <vector>

#include "server/queue/rows.hpp"

namespace quasi::server {

enum class Chance : std::uint8_t {
  kFits,      ///< a known device, or set of devices of one worker, is large enough
  kNone,      ///< no known worker of its pool runs its kind on such a device; one may register
  kTooLarge,  ///< such devices are known, and all are too small or too few
};

struct Prospect {
  Chance chance = Chance::kFits;
  std::string field;  ///< resource of the job: "gpu_mem_bytes", "gpus"; "" unless kTooLarge
  std::string why;    ///< the reason; "" for kFits
};

/// Tells if any worker that ever registered could run the job. Offline workers count, because they
/// may return, but a device never grows.
Prospect prospect_of(const JobRow& job, const std::vector<WorkerRow>& workers);

}  // namespace quasi::server
