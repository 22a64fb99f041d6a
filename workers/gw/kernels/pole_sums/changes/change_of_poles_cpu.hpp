#pragma once

#include "workers/gw/kernels/polarizability/dielectric_inverse.hpp"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Returns the change of a model from the poles `own` to those that follow from ε̃⁻¹, δB
/// (Bohr³ Ry) and δτ (1/Ry), in host memory (PoleSumKernels::change_of_poles, docs/theory/gw.md
/// 9.3).
/// @param inverse  ε̃⁻¹
/// @param elements  the other data of the new poles
PoleChange change_of_poles_cpu(const PlasmonPoleView& own, const HostInverse& inverse,
                               const ScreenedElements& elements);

}  // namespace quasi::gw
