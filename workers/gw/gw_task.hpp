#pragma once

#include <memory>

#include "workers/engine/task.hpp"

namespace quasi {

/// Makes the task of the kind `gw`: quasiparticle energies in the GW approximation, from
/// wavefunction files or a built-in crystal (docs/theory/gw.md). Begin here.
std::unique_ptr<Task> make_gw_task();

}  // namespace quasi
