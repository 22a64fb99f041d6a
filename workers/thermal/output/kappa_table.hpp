#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace quasi::thermal {

/// Formats the summary of a run as a table for the terminal: κ by temperature in W/m/K. Iterations,
/// errors, derived quantities, the convergence study and warnings follow if the summary holds them.
std::string kappa_table(const nlohmann::json& summary);

}  // namespace quasi::thermal
