#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "workers/backend/device/device.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Returns ε_M(q → 0) of one frequency, Cartesian, with the symmetry of the crystal. @param m  a
/// matrix with DielectricMatrix::long_wave
CMat3 macroscopic_tensor(const Calculation& run, const DielectricMatrix& m, std::size_t frequency);

/// Returns counts and estimates of a plan.
nlohmann::json summary_of_plan(const Plan& plan);

/// Returns the results of a job as plain numbers and lists (docs/reference/gw.md).
nlohmann::json summary_of(const Calculation& run, const Device& device, int n_devices);

/// Formats a summary as a table for people: the parts of Σ by state, the self-test and the gap.
std::string table_of(const nlohmann::json& summary);

}  // namespace quasi::gw
