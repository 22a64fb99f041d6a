#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/input/force_constants/constants_covariance.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"

namespace quasi::thermal {

/// Begin here: writes the derivative of κ by third-order constants into the group /derivative of a
/// result, multiplied by sheet_factor as κ is. It does nothing for cases without a derivative.
void write_derivative(const Deck& deck, const SolvedCase& solved,
                      const std::optional<ConstantsCovariance>& covariance, H5Writer& out);

/// Adds the solution that was differentiated, Σ Φ ∂κ/∂Φ in W/m/K, the norm of ∂κ/∂Φ and, with a
/// covariance, the error of κ to the summary of such a case.
void summarise_derivative(const Deck& deck, const SolvedCase& solved,
                          const std::optional<ConstantsCovariance>& covariance,
                          nlohmann::json& summary);

/// Formats the relative change of κ by 1 % of all third-order constants, one line a temperature.
/// Returns "" if the summary has no derivative.
std::string derivative_table(const nlohmann::json& summary);

}  // namespace quasi::thermal
