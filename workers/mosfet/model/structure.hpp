#pragma once

#include <cstddef>
#include <vector>

#include "workers/mosfet/model/model.hpp"

namespace quasi::mosfet {

/// The device on its mesh: everything about geometry and materials that no bias changes.
///
/// Material belongs to z cells (between nodes j and j+1). At an interface node U and N_D are the
/// mean of both sides; ε_R along z is the cell's, along x the mean of the two adjacent cells. This
/// is second order in Δz; a node-wise assignment is first order only.
struct Structure {
  int nx = 0, nz = 0;
  double dx_nm = 0, dz_nm = 0;
  std::vector<double> x_nm, z_nm;           ///< [nx], [nz]
  std::vector<double> barrier_ev;           ///< U [nz]
  std::vector<double> doping_nm3;           ///< N_D [nx][nz]
  std::vector<double> eps_cell;             ///< ε_R of a z cell [nz−1]
  int gate_first = 0, gate_last = 0;        ///< x nodes under the gates, both included
  int silicon_first = 0, silicon_last = 0;  ///< z nodes of the two silicon/oxide interfaces

  /// Families of equal m_z: valley pairs of one family share levels and wave functions.
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

  /// Control volume of a column along x: Δx, half at the two ends.
  double column_width_nm(int i) const { return i == 0 || i == nx - 1 ? 0.5 * dx_nm : dx_nm; }
  /// ε_R Δz of the face between two columns at row j (half cells on the edges).
  double face_x(int j) const {
    double sum = 0.0;
    if (j > 0) sum += 0.5 * eps_cell[static_cast<std::size_t>(j - 1)];
    if (j < nz - 1) sum += 0.5 * eps_cell[static_cast<std::size_t>(j)];
    return sum * dz_nm;
  }
};

}  // namespace quasi::mosfet
