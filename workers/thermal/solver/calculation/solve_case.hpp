#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/thermal/model/case_options.hpp"
#include "workers/thermal/model/lattice_model.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"
#include "workers/thermal/solver/three_phonon/precision_check.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"
#include "workers/thermal/solver/transport/derived.hpp"

namespace quasi::thermal {

/// κ of one temperature by one set of scattering processes.
struct LevelConductivity {
  Mat3 kappa_rta_w_per_mk{};
  std::optional<Mat3> kappa_w_per_mk;  ///< of the linearised BTE, where it is solved
};

/// One model taken from modes to κ.
struct SolvedCase {
  ConductivityRun run;
  nlohmann::json checks;                        ///< of check_case and check_broadening
  std::unique_ptr<Checkpoint> checkpoint;       ///< of the iteration and its collision operator
  std::unique_ptr<FourPhononRun> four_phonon;   ///< with four_phonon
  std::optional<PrecisionError> precision;      ///< with precision = mixed
  std::optional<PrecisionError> precision_4ph;  ///< of four phonons, where all processes are summed
  std::optional<Derived> derived;               ///< not with onlyharmonic
  /// [nT][n_blocks][27] derivative of the mean diagonal element of κ by the third-order constants,
  /// where the options ask for it, on the first rank. W/m/K per eV/Å³.
  std::vector<std::vector<double>> kappa_derivative;
  /// [nT][n_blocks][81] the same by the fourth-order constants. W/m/K per eV/Å⁴.
  std::vector<std::vector<double>> kappa_derivative_4ph;
  /// [nT] κ without four phonons, where the options ask for it and four phonons scatter.
  std::vector<LevelConductivity> three_phonons_alone;
};

/// Returns the conductivities of a result.
LevelConductivity level_of(const TemperatureResult& result);

/// Computes the modes of a case and warns of temperatures that are too low for its widths.
ConductivityRun start_case(const LatticeModel& model, const CaseOptions& options,
                           Progress& progress);

/// @throws InvalidInput where κ is wanted and no mode carries heat.
void require_transport(const LatticeModel& model, const CaseOptions& options, const Modes& modes);

/// The devices and ranks of a case, and the directory of its checkpoints.
struct CaseSite {
  const std::vector<Device>& devices;
  Ranks& ranks;
  std::filesystem::path checkpoint_directory;
};

/// Takes a model from harmonic modes to κ. All ranks call it at the same time: sums over processes
/// are shared out among all devices of all ranks, and every rank computes the rest for itself.
/// @throws InvalidInput, NotConverged, OutOfMemory and Cancelled as the steps do.
SolvedCase solve_case(const LatticeModel& model, const CaseOptions& options, const CaseSite& site,
                      Progress& progress);

}  // namespace quasi::thermal
