#pragma once

#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// Three-phonon sums by all devices of all ranks on the CPU; on CUDA each rank makes all of them on
/// its first device, since a row's bits there depend on how many rows go with it. A row's sum is
/// made by one device, in an order that is its own, so that any number of them gives the same bits.
/// Rows go round by points, since neighbours cost alike. Every call is made together, and gives
/// every rank all rows.
std::unique_ptr<ThreePhononSums> share_three_phonons(const std::vector<Device>& devices,
                                                     Ranks& ranks);

}  // namespace quasi::thermal
