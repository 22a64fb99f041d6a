#pragma once

#include <memory>

#include "bench/published/published_strategy.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

/// Three-phonon sums as published with FourPhonon_GPU [guo2025] (docs/theory/thermal.md 11.2):
/// every candidate is tested by itself and every matrix element is summed block by block. They give
/// the numbers of ThreePhononKernels and serve to compare times.
namespace quasi::thermal {

/// Makes sums that follow a published strategy on a device. On the CPU the two lists are the same.
/// The lists of kListHost and kListDevice must fit the memory budget of the problem.
/// @throws BackendAbsent if the back end of the device is not in this build.
std::unique_ptr<ThreePhononSums> make_published_sums_3ph(const Device& device,
                                                         PublishedStrategy strategy);
// One body for each build: published_sums_3ph_cuda.cu and …_absent.cpp.
std::unique_ptr<ThreePhononSums> make_published_sums_3ph_cuda(const Device& device,
                                                              PublishedStrategy strategy);

}  // namespace quasi::thermal
