#pragma once

#include "workers/backend/host_device.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

/// Poisson's equation on finite volumes at one node (docs/theory/mosfet.md 3.4, 5.5). Materials
/// belong to z cells, and the Neumann edges have half cells.
struct PoissonStencil {
  int nx = 0, nz = 0;
  double dx_nm = 0, dz_nm = 0;
  const double* eps_cell = nullptr;  ///< ε_R of a z cell [nz−1]
  const double* face_x = nullptr;    ///< ε_R Δz of the faces between columns [nz]

  /// Returns the control volume of a column along x: Δx, half of it at the two ends.
  QUASI_HD double width_nm(int i) const { return i == 0 || i == nx - 1 ? 0.5 * dx_nm : dx_nm; }

  /// Returns P_ij = Σ_faces ε_R (area/distance)(V_ij − V_neighbour) + (e/ε0)(N_ij − N_D,ij) volume,
  /// V nm. @param potential_v  V [nx][nz]
  QUASI_HD double residual(const double* potential_v, double density_nm3, double doping_nm3, int i,
                           int j) const {
    const double* v = potential_v + i * nz + j;
    const double width = width_nm(i), across = face_x[j] / dx_nm;
    double flux = 0.0;
    if (j > 0) flux += eps_cell[j - 1] * width / dz_nm * (v[0] - v[-1]);
    if (j < nz - 1) flux += eps_cell[j] * width / dz_nm * (v[0] - v[1]);
    if (i > 0) flux += across * (v[0] - v[-nz]);
    if (i < nx - 1) flux += across * (v[0] - v[nz]);
    return flux + kChargeOverEpsilon0_v_nm * width * dz_nm * (density_nm3 - doping_nm3);
  }
};

}  // namespace quasi::mosfet
