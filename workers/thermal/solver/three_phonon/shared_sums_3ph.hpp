#pragma once

#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// Makes three-phonon sums that all devices of all ranks share on the CPU. One device computes the
/// sum of a row, in the order of the row, so that any number of devices gives the same bits. Points
/// go to the devices in turn, because neighbours cost alike. With CUDA each rank computes all rows
/// on its first device, because the bits of a row depend on the number of rows computed with it.
/// All ranks make every call at the same time, and each gets all rows.
std::unique_ptr<ThreePhononSums> share_three_phonons(const std::vector<Device>& devices,
                                                     Ranks& ranks);

}  // namespace quasi::thermal
