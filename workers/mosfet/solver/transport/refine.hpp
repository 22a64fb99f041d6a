#pragma once

#include <optional>

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// The deck on a coarser mesh for the way to a steady state: N_w/4, N_φ/2, and N_x/2 where the gate
/// edges stay on nodes. Nothing if the mesh is too small to be worth it.
std::optional<Deck> coarser_deck(const Deck& deck);

/// A finished state of the coarse mesh on the fine one. The occupation is linear in x and φ and
/// log-linear in w (a Maxwellian stays one); every state's sheet density is the coarse one, linear
/// in x. V is bilinear, levels and wave functions are solved afresh.
/// @param coarse_scale, fine_scale  Φ* of either
PointState refine_state(const TransportProblem& coarse, const PointState& from, double coarse_scale,
                        const TransportProblem& fine, double fine_scale);

}  // namespace quasi::mosfet
