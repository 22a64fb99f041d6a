#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Report on a deck before anything expensive runs: {"checks", "plan"}, and further warnings
/// in run.warnings. `run` holds the modes.
///
/// Process numbers: three phonons from counting up to 96 rows, four phonons from 2e6 random tuples.
/// Times: three phonons from a few points solved on the device, four phonons from measured rates of
/// arithmetic (docs/performance/README.md), good to a factor of two.
nlohmann::json lint(const Deck& deck, ConductivityRun& run, const Device& device);

/// Estimated four-phonon tuples by channel, from `n_draws` random ones of each; deterministic.
std::array<double, 3> estimate_processes_4ph(const Deck& deck, const Modes& modes,
                                             std::int64_t n_draws);

}  // namespace quasi::thermal
