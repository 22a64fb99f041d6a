#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_geometry.hpp"

namespace quasi::mosfet {

/// Levels with the volumes that belong to them.
struct PlacedLevels {
  BeamLevels levels;
  BeamGeometry geometry;
  BeamEdgeVolumes edges;
};

/// Moves electrons through the cells of H when the levels move (docs/theory/mosfet.md 17.10). Each
/// electron keeps k_x and k_y, so that dH/dt = ∂_t ε. With volumes V and V' before and after,
/// and V̂ = V' with every band edge weighted by e^{(ε'−ε)/kT}, the number
///
///   U_{k−½} = Σ_{k' ≥ k} (ρ V̂ − V) F
///
/// of a Maxwellian rises into the cells from k on. F is the occupation of the source's equilibrium,
/// and ρ makes the sum over all cells zero. A distribution moves U ĥ with the mean ĥ of f/F of
/// both cells, weighted as Lax and Wendroff do. A Maxwellian stays one. Every line keeps its
/// electrons to rounding, and g ≥ 0 stays so.
/// @param g  in the layout of BeamOperator
void sweep_levels(const PlacedLevels& before, const PlacedLevels& after, std::vector<double>* g);

}  // namespace quasi::mosfet
