#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Returns F v̄ of an empty band at x = E − E_n, Bohr³ Ry, [n_g][n_g] (docs/theory/gw.md 9.4).
UnsetVector<Cplx> empty_band_matrix(const PlasmonPoleView& own, double x_ry);

/// Returns w(D) of all D of the box in host memory (docs/theory/gw.md 9.3, 9.4). It belongs to a
/// change (LoadedPoleChanges::sums_by_difference) or to the model itself
/// (LoadedPoleModel::sums_by_difference).
/// @param change  null for the sums of the model itself
/// @param rows  G that are summed; rows of a Hermitian model stand for their mirror images, too
std::vector<Cplx> sums_by_difference_cpu(const PlasmonPoleView& own, const PoleChange* change,
                                         const ElementRows& rows, double x_ry,
                                         const DifferenceBox& box);

}  // namespace quasi::gw
