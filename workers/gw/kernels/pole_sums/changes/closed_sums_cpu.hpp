#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// LoadedPoleChanges::sums_by_difference in host memory. See docs/theory/gw.md 9.3, 9.4 for the
/// equations.
std::vector<Cplx> sums_by_difference_cpu(const PlasmonPoleView& own, const PoleChange& change,
                                         double x_ry, const DifferenceBox& box);

}  // namespace quasi::gw
