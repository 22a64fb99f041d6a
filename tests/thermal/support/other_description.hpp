#pragma once

#include <vector>

#include "workers/thermal/input/deck/deck.hpp"

namespace quasi::thermal::test {

/// Another description of one crystal. Its lattice vectors are a'_i = R Σ_j cell_ij a_j.
struct OtherDescription {
  IntMat3 cell{Index3{1, 0, 0}, Index3{0, 1, 0}, Index3{0, 0, 1}};  ///< determinant ±1
  Mat3 rotation = kIdentity;                                        ///< R, Cartesian
  bool reverse_atoms = false;                                       ///< atoms in reverse order
  Index3 mesh{0, 0, 0};       ///< divisions along the new axes; 0: unchanged
  Index3 supercell{0, 0, 0};  ///< of the second order along the new axes; 0: unchanged
};

/// Describes the crystal of a deck otherwise: lattice, positions, dielectric response, constants of
/// second to fourth order, mesh and symmetry. The test fails where the supercell of the second
/// order is not the same torus in both descriptions.
void describe_otherwise(const OtherDescription& other, Deck& deck);

/// Returns a rotation about the axis (1, 2, 3)/√14 by 0.7 rad.
Mat3 generic_rotation();

}  // namespace quasi::thermal::test
