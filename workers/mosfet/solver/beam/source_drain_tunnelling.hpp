#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"

namespace quasi::mosfet {

/// Part of a level's barrier that an electron cannot enter.
struct ForbiddenRegion {
  double action = 0;                      ///< ∫|k_x| dx over the region
  int source_node = -1, drain_node = -1;  ///< last open nodes before and behind it; −1: none
};

/// Returns the forbidden region around the top of a level for total energy H and transverse
/// momentum κ. Its wave number follows from γ(H − ε) = k̂² + κ² with a negative k̂²
/// (docs/theory/mosfet.md 15.7). k̂² is linear between nodes.
/// @param edge_ev  ε of the level [grid.nx]  @param mx_m0  mass along x, m₀
ForbiddenRegion forbidden_region(const BeamGrid& grid, const double* edge_ev, double mx_m0,
                                 double h_ev, double kappa);

/// Current through the barriers of all levels.
struct TunnelCurrent {
  double electrons = 0;  ///< from source to drain, 1/(nm fs); both valleys of every pair
  double energy = 0;     ///< total energy that they carry, eV/(nm fs)
};

/// Returns the current that tunnels below the tops of the barriers [gamow1928]
/// (docs/theory/mosfet.md 15.7):
///
///   J = 2 Σ_{νp} C_ν c_ν ∫∫ dκ dH e^{−2∫|k_x|dx} [f(source side) − f(drain side)].
///
/// The integral covers the part of every cell that is closed at the top of the barrier. f is the
/// mean occupation of the last open nodes. The tunnelled charge does not act on the field.
/// @param mean  ḡ of a steady state [n_states][nx][n_h]
TunnelCurrent source_drain_tunnelling(const BeamGrid& grid, const BeamLevels& levels,
                                      const std::vector<double>& mean);

}  // namespace quasi::mosfet
