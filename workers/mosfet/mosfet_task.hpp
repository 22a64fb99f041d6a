#pragma once

#include <memory>

#include "workers/engine/task.hpp"

namespace quasi {

/// Makes the task of the kind `mosfet`: a double-gate transistor by Boltzmann, Schrödinger and
/// Poisson (docs/theory/mosfet.md). Begin here, then read input/deck.hpp and
/// solver/sweep/sweep.hpp.
std::unique_ptr<Task> make_mosfet_task();

}  // namespace quasi
