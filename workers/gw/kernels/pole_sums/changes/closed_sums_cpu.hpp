#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Returns F v̄ of an empty band at x, [n_g][n_g]. See docs/theory/gw.md 9.4 for the equations.
UnsetVector<Cplx> empty_band_matrix(const PlasmonPoleView& own, double x_ry);

/// Sums by difference in host memory: of a change (LoadedPoleChanges::sums_by_difference), or of
/// the model itself (LoadedPoleModel::sums_by_difference). See docs/theory/gw.md 9.3, 9.4 for the
/// equations.
/// @param change  null: the model itself
/// @param rows    G that are summed; those of a Hermitian model stand for their mirror images, too
std::vector<Cplx> sums_by_difference_cpu(const PlasmonPoleView& own, const PoleChange* change,
                                         const ElementRows& rows, double x_ry,
                                         const DifferenceBox& box);

}  // namespace quasi::gw
