#pragma once

#include <memory>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// Makes three-phonon sums on one device whose list of processes need not fit its memory. If the
/// list does not fit, every application of the operator computes processes and matrix elements
/// again, for one part of the points after the other. On the CPU the bits are those of a list that
/// is kept. With CUDA the last bits of a row depend on the number of rows computed with it.
/// @throws OutOfMemory from rates(), before starting, if not even the list of one point fits.
std::unique_ptr<ThreePhononSums> make_three_phonon_sums(const Device& device);

}  // namespace quasi::thermal
