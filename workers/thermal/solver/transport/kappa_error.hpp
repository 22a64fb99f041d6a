#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Standard error of κ over κ, both traces in relaxation-time approximation, from the standard
/// errors of the rates. A degenerate set shares one mean rate, and so one error.
/// @param t                    number of the temperature in transport.options
/// @param further_per_ps(row)  four-phonon rate; null: none
/// @param error_per_ps(row)    standard error of the row's whole rate
double relative_kappa_error(const Transport& transport, const ConductivityRun& run, std::size_t t,
                            const std::function<double(std::int64_t)>& further_per_ps,
                            const std::function<double(std::int64_t)>& error_per_ps);

/// Replaces the errors of the branches of each degenerate set by the error of their mean. The
/// branches are drawn independently.
/// @param values  [points][n_branches]
void average_errors_over_subspaces(const Modes& modes, const std::vector<std::int32_t>& points,
                                   double* values);

}  // namespace quasi::thermal
