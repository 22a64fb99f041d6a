#pragma once

#include "workers/thermal/input/control/control_keys.hpp"

namespace quasi::thermal {

/// Fills in the defaults that depend on several keys and checks the keys against each other.
/// @throws InvalidInput naming where the keys were set: for missing keys, for values outside of
///         their limits and for impossible combinations (docs/theory/thermal.md 1.1).
Control checked_control(RawControl raw);

}  // namespace quasi::thermal
