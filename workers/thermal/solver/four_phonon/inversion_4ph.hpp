#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/inversion.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// Largest |Ψ − inverted Ψ| over the largest |Ψ|.
double inversion_residual(const Inversion& inversion, const SparseForceConstants& fourth_order);

/// Turns the eigenvectors of each degenerate set into ones with Θe = e that span the same.
/// @param subspace     [n_q][nb] first branch of the set
/// @param eigenvector  [n_q][nb][nb], changed
/// @return largest deviation of a set from one that Θ maps on itself, 0 to 1: |Θe − its part within
///         the set|
double turn_to_inversion(const QMesh& mesh, const Inversion& inversion,
                         const std::vector<std::int32_t>& subspace,
                         std::vector<std::complex<double>>& eigenvector);

}  // namespace quasi::thermal
