#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/model/case_options.hpp"
#include "workers/thermal/model/lattice_model.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Checks the modes, the constants, the positions and the sound speeds of a case, and returns
/// {name: {"ok", numbers and limits}}. It takes milliseconds. Each finding is also a warning of the
/// run.
/// @param run  holds the modes
/// @throws InvalidInput for findings that make the result worthless (docs/theory/thermal.md 12.4),
///         unless a key of the deck allows them
nlohmann::json check_case(const LatticeModel& model, const CaseOptions& options,
                          ConductivityRun& run);

/// Counts the processes of up to 96 rows, checks the width against the mesh and adds "broadening"
/// to the checks. Returns the estimated number of all three-phonon processes.
std::int64_t check_broadening(const Transport& transport, const CheckOptions& options,
                              ConductivityRun& run, ThreePhononProblem& problem,
                              nlohmann::json& checks);

/// Checks κ: its size, its symmetry, and every second point of the mesh against all points. Adds
/// "kappa_range", "kappa_symmetry" and "kappa_half_mesh" to the checks.
/// @throws InvalidInput for a negative diagonal element, unless it is allowed
void check_result(const LatticeModel& model, const CaseOptions& options, ConductivityRun& run,
                  nlohmann::json& checks);

/// Speeds of the acoustic branches near Γ.
struct SoundSpeeds {
  double slowest_km_s = 0.0, fastest_km_s = 0.0;
  double elastic_energy_ev = 0.0;  ///< m̄⟨v²⟩ with the mean mass of the atoms
};
/// Computes ω/|q| of three branches along 26 directions at a hundredth of a reciprocal vector.
/// Directions across an axis with one division of the mesh are left out.
SoundSpeeds sound_speeds(const LatticeModel& model, const HarmonicOptions& options);

}  // namespace quasi::thermal
