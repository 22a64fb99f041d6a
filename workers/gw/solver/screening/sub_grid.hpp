#pragma once

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// The same mean field on every d-th point of its k-grid along each axis: the irreducible points
/// that lie on the coarser grid, and their images at k + q₀. Nothing is calculated anew.
/// @param grid  divisors of the grid of `field`
/// @throws InvalidInput if it is not
MeanField on_sub_grid(const MeanField& field, const IVec3& grid);

/// All grids of this kind that are coarser along every axis with more than one point, coarsest
/// first.
std::vector<IVec3> coarser_grids(const IVec3& grid);

}  // namespace quasi::gw
