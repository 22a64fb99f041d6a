#pragma once

#include "workers/gw/kernels/polarizability/dielectric_inverse.hpp"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// PoleSumKernels::change_of_poles in host memory. See docs/theory/gw.md 9.3 for the equations.
PoleChange change_of_poles_cpu(const PlasmonPoleView& own, const HostInverse& inverse,
                               const ScreenedElements& elements);

}  // namespace quasi::gw
