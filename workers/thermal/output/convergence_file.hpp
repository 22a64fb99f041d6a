#pragma once

#include <nlohmann/json.hpp>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/calculation/convergence_study.hpp"

namespace quasi::thermal {

/// Writes the group /convergence of result.h5: κ by mesh and by width, and both limits, W/(m K).
void write_study(const Deck& deck, const ConvergenceStudy& study, H5Writer& out);

/// Returns the key `convergence` of the summary.
nlohmann::json summarise_study(const Deck& deck, const ConvergenceStudy& study);

}  // namespace quasi::thermal
