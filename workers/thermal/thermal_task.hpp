#pragma once

#include <memory>

#include "workers/engine/task.hpp"

namespace quasi {

/// Makes the task of the kind `thermal`: lattice thermal conductivity from a deck of ShengBTE,
/// FourPhonon, TDEP, phonopy or phono3py (docs/theory/thermal.md). Begin here.
std::unique_ptr<Task> make_thermal_task();

}  // namespace quasi
