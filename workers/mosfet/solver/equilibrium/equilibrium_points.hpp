#pragma once

#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Begin here: solves Schrödinger and Poisson in equilibrium at every bias point of the deck and
/// returns the fields that the deck asks for. equilibrium.hpp holds the solver, drift_diffusion.hpp
/// adds a current. @throws NotConverged
std::vector<PointResult> equilibrium_points(const Deck& deck, Progress& progress);

}  // namespace quasi::mosfet
