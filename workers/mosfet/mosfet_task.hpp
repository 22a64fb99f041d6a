#pragma once

#include <memory>

#include "workers/engine/task.hpp"

namespace quasi {

/// The kind `mosfet`: a double-gate transistor by Boltzmann, Schrödinger and Poisson.
std::unique_ptr<Task> make_mosfet_task();

}  // namespace quasi
