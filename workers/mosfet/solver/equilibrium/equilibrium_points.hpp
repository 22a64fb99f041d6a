#pragma once

#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Schrödinger and Poisson in equilibrium at every bias point of the deck, with the fields that the
/// deck asks for. @throws NotConverged
std::vector<PointResult> equilibrium_points(const Deck& deck, Progress& progress);

}  // namespace quasi::mosfet
