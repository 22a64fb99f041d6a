#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Builds the summary of a run: mode, transport, derived figures, and the bias, status and numbers
/// of every point.
nlohmann::json summary_of(const Deck& deck, const std::vector<PointResult>& points);

/// Formats the summary as a table for a terminal.
std::string summary_table(const nlohmann::json& summary);

}  // namespace quasi::mosfet
