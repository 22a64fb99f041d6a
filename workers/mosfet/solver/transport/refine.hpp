#pragma once

#include <optional>

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Returns the deck on a coarser mesh, which gives a start for a steady state: N_w/4, N_φ/2, and
/// N_x/2 if the gate edges stay on nodes. Returns nothing if the mesh is too small.
std::optional<Deck> coarser_deck(const Deck& deck);

/// Interpolates a finished state from the coarse mesh to the fine one. The occupation is linear in
/// x and φ and log-linear in w, so that a Maxwellian stays one. The sheet density of every state is
/// the coarse one, linear in x. V is bilinear; levels and wave functions are solved again. @param
/// coarse_scale, fine_scale  Φ* of the two meshes
PointState refine_state(const TransportProblem& coarse, const PointState& from, double coarse_scale,
                        const TransportProblem& fine, double fine_scale);

}  // namespace quasi::mosfet
