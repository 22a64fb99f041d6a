#pragma once

#include <cstddef>
#include <vector>

#include "workers/mosfet/model/model.hpp"

namespace quasi::mosfet {

/// The device on its mesh: all properties of geometry and materials, which do not depend on the
/// bias.
///
/// Materials belong to z cells (between nodes j and j+1). At an interface node U and N_D are the
/// mean of both sides. ε_R along z is that of the cell; along x it is the mean of the two adjacent
/// cells. This is second order in Δz, while an assignment to nodes is of first order
/// (docs/theory/mosfet.md 5.5).
struct Structure {
  int nx = 0, nz = 0;
  double dx_nm = 0, dz_nm = 0;
  std::vector<double> x_nm, z_nm;           ///< [nx], [nz]
  std::vector<double> barrier_ev;           ///< U [nz]
  std::vector<double> doping_nm3;           ///< N_D [nx][nz]
  std::vector<double> eps_cell;             ///< ε_R of a z cell [nz−1]
  int gate_first = 0, gate_last = 0;        ///< x nodes under the gates, both included
  int silicon_first = 0, silicon_last = 0;  ///< z nodes of the two silicon/oxide interfaces

  /// A family of valley pairs with equal m_z, which share levels and wave functions.
  struct Family {
    double mz_m0 = 0;
    std::vector<double> base_ev;  ///< diagonal of H without −V, interior nodes [nz−2]
    std::vector<double> off_ev;   ///< off-diagonal [nz−3]
  };
  std::vector<Family> families;
  std::vector<int> family_of;  ///< [n_valleys]
  std::vector<ValleyPair> valleys;
  int subbands = 0;

  int interior() const { return nz - 2; }
  int n_valleys() const { return static_cast<int>(valleys.size()); }
  int n_families() const { return static_cast<int>(families.size()); }

  /// Returns the width of the control volume of a column along x: Δx, half of it at the two ends.
  double column_width_nm(int i) const { return i == 0 || i == nx - 1 ? 0.5 * dx_nm : dx_nm; }
  /// Returns ε_R Δz of the face between two columns at row j, with half cells on the edges.
  double face_x(int j) const {
    double sum = 0.0;
    if (j > 0) sum += 0.5 * eps_cell[static_cast<std::size_t>(j - 1)];
    if (j < nz - 1) sum += 0.5 * eps_cell[static_cast<std::size_t>(j)];
    return sum * dz_nm;
  }
};

}  // namespace quasi::mosfet
