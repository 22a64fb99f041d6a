#pragma once

#include <memory>

#include "workers/engine/task.hpp"

namespace quasi {

/// Lattice thermal conductivity from a ShengBTE/FourPhonon deck.
std::unique_ptr<Task> make_thermal_task();

}  // namespace quasi
