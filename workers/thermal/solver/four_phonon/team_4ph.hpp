#pragma once

#include <initializer_list>
#include <vector>

#include "workers/backend/ranks/ranks.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

/// The kernels for four-phonon sums: one object for every device of this process, in each process
/// of the job.
struct Team4ph {
  std::vector<ScatteringKernels4ph*> kernels;
  Ranks* ranks = &one_rank();

  Team4ph(std::vector<ScatteringKernels4ph*> of_devices, Ranks& processes = one_rank())
      : kernels(std::move(of_devices)), ranks(&processes) {}
  Team4ph(std::initializer_list<ScatteringKernels4ph*> of_devices) : kernels(of_devices) {}
};

}  // namespace quasi::thermal
