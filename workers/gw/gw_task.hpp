#pragma once

#include <memory>

#include "workers/engine/task.hpp"

namespace quasi {

/// Quasiparticle energies in the GW approximation, from wavefunction files or a built-in crystal.
std::unique_ptr<Task> make_gw_task();

}  // namespace quasi
