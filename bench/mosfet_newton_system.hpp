#pragma once

#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"

namespace quasi::mosfet {

/// What a chord iteration solves, as solvers are compared on it: the Newton matrix of the standard
/// device's equilibrium (65 × 65, V_GS = 0.6 V), the Laplacian of the same geometry, both
/// factorised, and a random right side.
struct NewtonSystem {
  ColumnMatrix matrix, laplace;
  std::vector<double> right_side;  ///< [nx][nz], zero at given potentials

  /// ‖M x − b‖∞
  double residual(const std::vector<double>& x) const;
};

NewtonSystem standard_newton_system();

}  // namespace quasi::mosfet
