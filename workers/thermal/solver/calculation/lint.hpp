#pragma once

#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/model/case_options.hpp"
#include "workers/thermal/model/lattice_model.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Reports on a case before anything expensive runs: {"checks", "plan"}. Further warnings go to
/// run.warnings.
///
/// Numbers of processes come from counting up to 96 rows (three phonons) and from 2e6 random tuples
/// (four phonons). Times come from a few points (three phonons) and a few tiles (four phonons) that
/// are computed on the device. They are good to a factor of two.
/// @param run  holds the modes
nlohmann::json lint(const LatticeModel& model, const CaseOptions& options, ConductivityRun& run,
                    const Device& device);

/// Estimates the number of four-phonon processes by channel from `n_draws` random tuples of each.
/// Equal arguments give equal estimates.
std::array<double, 3> estimate_processes_4ph(const Symmetry& symmetry,
                                             const FourPhononOptions& options, const Modes& modes,
                                             std::int64_t n_draws);

}  // namespace quasi::thermal
