#pragma once

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Restricts a mean field to a coarser k-grid inside its own: the irreducible points that lie on
/// the coarser grid, and their images at k + q₀. No state is calculated.
/// @param grid  divisors of the grid of `field`
/// @throws InvalidInput if `grid` does not divide the grid of `field`
MeanField on_sub_grid(const MeanField& field, const IVec3& grid);

/// Returns all grids inside `grid` that are coarser along every axis with more than one point, in
/// ascending order.
std::vector<IVec3> coarser_grids(const IVec3& grid);

}  // namespace quasi::gw
