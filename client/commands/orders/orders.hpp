#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct OrderOptions {
  std::string within;  ///< time in which jobs of a drained worker may end
  std::string reason;
  bool evict = false;  ///< of `cordon`: the jobs of the device leave it
};

/// Tells if this action of `quasi admin` is an order of an operator: drain, undrain, cordon,
/// uncordon or preempt.
bool is_order(const std::string& action);

/// `quasi admin drain WORKER` and its relatives take workers and devices out of service and back.
/// `quasi admin preempt JOB…` lets running jobs write a checkpoint and wait again.
/// @param words  the action and its names
ExitStatus order(Session& session, const std::vector<std::string>& words,
                 const OrderOptions& options);

}  // namespace quasi::client
