#pragma once

#include <future>
#include <vector>

#include "workers/thermal/solver/four_phonon/team_4ph.hpp"

namespace quasi::thermal {

/// Loads a problem to all devices of a team at the same time, while the caller goes on. The problem
/// and the kernels must outlive it, and nothing else may use the kernels before loaded().
class ProblemLoading4ph {
 public:
  ProblemLoading4ph(const Team4ph& team, const Problem4ph& problem) : kernels_(team.kernels) {
    for (ScatteringKernels4ph* kernel : kernels_)
      steps_.push_back(
          std::async(std::launch::async, [kernel, &problem] { kernel->load(problem); }));
  }

  /// Waits until a device has the problem. One thread at a time may ask for a device.
  /// @return its kernels
  /// @throws what ScatteringKernels4ph::load threw
  ScatteringKernels4ph& loaded(std::size_t device) {
    if (steps_[device].valid()) steps_[device].get();
    return *kernels_[device];
  }

 private:
  std::vector<ScatteringKernels4ph*> kernels_;
  std::vector<std::future<void>> steps_;
};

}  // namespace quasi::thermal
