#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace quasi::thermal {

/// The summary of a run as a table for the terminal: κ by temperature in W/m/K, with iterations,
/// errors, derived quantities, the convergence study and warnings where the summary holds them.
std::string kappa_table(const nlohmann::json& summary);

}  // namespace quasi::thermal
