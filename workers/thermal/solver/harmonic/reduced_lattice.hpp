#pragma once

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

}  // namespace quasi::thermal
