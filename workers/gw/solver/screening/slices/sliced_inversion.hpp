#pragma once

#include <cstdint>

#include "workers/backend/view.hpp"
#include "workers/gw/solver/device_team.hpp"

namespace quasi::gw {

/// Inverts a Hermitian positive definite matrix in host memory in place, in slices on all devices
/// of this rank (docs/theory/gw.md 4.3). For each panel K of rows, one after another,
///
///   D = (A_KK)⁻¹,   A_ij ← A_ij − A_iK D A_Kj,   A_Kj ← D A_Kj,   A_KK ← −D,
///
/// so that A ends as −A⁻¹. A_KK is a Schur complement, whose Cholesky factor tells whether A
/// is positive definite. A device holds a panel and some rows of one slice at a time. All devices
/// take the panel from the host. The steps do not depend on the number of devices.
/// @param matrix  [n][n]; the triangle i ≤ j is read, and it holds the inverse on return
/// @param slices  number of slices
/// @throws NotConverged naming the leading minor if the matrix is not positive definite
void invert_in_slices(View<double, 2> matrix, std::int64_t slices, DeviceTeam& team);
void invert_in_slices(View<Cplx, 2> matrix, std::int64_t slices, DeviceTeam& team);

}  // namespace quasi::gw
