#pragma once

#include <memory>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// Three-phonon sums on one device whose list of processes need not fit its memory: where it does
/// not, every application of the operator makes the processes again, part by part of the points,
/// with the matrix elements. On the CPU with the bits of a list that is kept; on CUDA a row's last
/// bits depend on how many rows go with it.
/// @throws OutOfMemory from rates(), before starting, where not even the list of one point fits.
std::unique_ptr<ThreePhononSums> make_three_phonon_sums(const Device& device);

}  // namespace quasi::thermal
