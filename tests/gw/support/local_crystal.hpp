#pragma once

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw::test {

/// A cell by its lattice vectors (rows, Bohr), with the identity as its only operation.
Crystal cell(const Mat3& lattice);

/// A cell of three edges (Bohr) at right angles, with the identity as its only operation.
Crystal orthogonal_cell(double a, double b, double c);

/// Adds the eight operations that change signs of coordinates. They are those of a cell at right
/// angles with an even potential about its origin.
Crystal with_mirrors(Crystal crystal);

/// A crystal of Gaussian wells −depth e^{−r²/2w²} at the origin of each cell, with one electron
/// pair a cell. Its states are made here by dense diagonalisation.
struct LocalCrystal {
  Crystal cell;
  double depth_ry = 4.0;
  double width_bohr = 2.0;
  double cutoff_ry = 10.0;  ///< of the states
  int bands = 12;
  IVec3 k_grid{1, 1, 1};
};

/// Returns the mean field of a crystal. Its q → 0 is that of k·p, since H is local.
/// @param q0  reduced
MeanField local_crystal(const LocalCrystal& crystal, const Vec3& q0 = {0.0, 0.0, 0.001});

}  // namespace quasi::gw::test
