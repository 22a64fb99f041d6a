#pragma once

#include <cstdint>

#include "workers/backend/view.hpp"
#include "workers/gw/solver/device_team.hpp"

namespace quasi::gw {

/// Inverts a Hermitian positive definite matrix A in place by Gauss–Jordan elimination
/// (docs/theory/gw.md 4.3). A stays in host memory, and all devices of this rank share the work.
/// The elimination runs over panels K, which are ranges of rows. For each panel in turn,
///
///   D = (A_KK)⁻¹,   A_ij ← A_ij − A_iK D A_Kj,   A_Kj ← D A_Kj,   A_KK ← −D,
///
/// with i and j outside of K. At the end the matrix holds −A⁻¹, and its sign is changed. Each
/// A_KK is a Schur complement. It has a Cholesky factor for all K if A is positive definite. A
/// device holds one panel and some rows of one slice at a time. The bits do not depend on the
/// number of devices.
/// @param matrix  [n][n]; the triangle i ≤ j is read, and it holds the inverse on return
/// @param slices  number of slices
/// @throws NotConverged naming the leading minor if the matrix is not positive definite
void invert_in_slices(View<double, 2> matrix, std::int64_t slices, DeviceTeam& team);
void invert_in_slices(View<Cplx, 2> matrix, std::int64_t slices, DeviceTeam& team);

}  // namespace quasi::gw
