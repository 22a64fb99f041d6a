#pragma once

#include <array>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Returns a Minkowski-reduced basis of a lattice, shortest vector first. Its lengths are the three
/// successive minima of the lattice.
/// @param lattice  rows are three finite vectors that do not lie in one plane
Mat3 reduced_lattice(const Mat3& lattice);

/// Returns M = ⟨Σ_i c_i c_iᵀ⟩, in the square of the unit of `steps`. The mean runs over all bases c
/// of the lattice whose lengths are its successive minima, so M does not depend on the basis
/// `steps` that describes the lattice (docs/theory/thermal.md 4).
/// @param steps  rows b_i/N_i, the steps of a mesh
Mat3 mesh_metric(const Mat3& steps);

/// Four vectors of a lattice with the sum zero, as integer coordinates in a basis.
using Superbase = std::array<Index3, 4>;

/// Returns the obtuse superbases of a lattice: four lattice vectors with the sum zero and no acute
/// angle between any two, of which three are a basis [conway1992]. One of each pair ±v is
/// returned, and of several those with the shortest three vectors. They are a property of the
/// lattice, so they do not depend on the basis `steps` that describes it (docs/theory/thermal.md
/// 4.1).
/// @param steps  rows b_i/N_i, the steps of a mesh
/// @return integer coordinates in `steps`
std::vector<Superbase> obtuse_superbases(const Mat3& steps);

}  // namespace quasi::thermal
