#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/model/three_phonon_options.hpp"

namespace quasi::thermal {

/// Gathers the data of the three-phonon kernels. Rows are the irreducible points. The result keeps
/// a pointer to `modes`.
ThreePhononProblem make_three_phonon_problem(const Crystal& crystal, SparseForceConstants fc3,
                                             const Symmetry& symmetry, const Modes& modes,
                                             const ThreePhononOptions& options);

/// Mesh coordinates of the shortest image of every point, for the division into normal and Umklapp
/// processes. Of several equally short images on the zone boundary it takes the first in
/// lexicographic order.
std::vector<Index3> first_zone_points(const Crystal& crystal, const QMesh& mesh);

/// Replaces per-branch values by their mean over each degenerate subspace.
/// @param values  [points][n_branches][components]
void average_over_subspaces(const Modes& modes, const std::vector<std::int32_t>& points,
                            int components, double* values);

}  // namespace quasi::thermal
