#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"

namespace quasi::mosfet {

/// Holds levels together with the volumes and areas of the cells that belong to them.
struct PlacedLevels {
  BeamLevels levels;
  BeamGeometry geometry;
  BeamEdgeVolumes edges;
};

/// Moves electrons through the cells of H when the levels ε move to ε' (docs/theory/mosfet.md
/// 17.10). An electron keeps k_x and k_y, so that its energy H changes by ε' − ε. The cells
/// have the volumes V before and V' after. V̂ is V' with each band edge of Simpson's rule weighted
/// by e^{(ε'−ε)/kT}. F is the occupation of the equilibrium of the source. For a Maxwellian f =
/// F the number that rises through the lower end of cell k is
///
///   U_{k−½} = Σ_{k' ≥ k} (ρ V̂ − V) F,
///
/// where ρ makes the sum over all cells zero. Another distribution moves U ĥ. ĥ is the mean of
/// f/F of the two cells with the weights of Lax and Wendroff. A Maxwellian stays a Maxwellian.
/// Every line keeps its number of electrons to rounding, and g ≥ 0 stays true.
/// @param before  levels that g belongs to
/// @param after   levels to which the electrons move, at most ΔH/2 away
/// @param g       occupations in the layout of BeamOperator; they are replaced
void sweep_levels(const PlacedLevels& before, const PlacedLevels& after, std::vector<double>* g);

}  // namespace quasi::mosfet
