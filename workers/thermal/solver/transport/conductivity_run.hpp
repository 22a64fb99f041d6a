#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/model/lattice_model.hpp"
#include "workers/thermal/model/rate_options.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"
#include "workers/thermal/solver/transport/iterative_bte.hpp"

namespace quasi::thermal {

/// Scattering beside three phonons, isotopes and boundaries: four phonons.
struct FurtherScattering {
  /// [nT][n_rows] in 1/ps, added to the total rates; empty: none.
  std::vector<double> rate_per_ps;
  /// In-scattering at temperature t of a field on the full mesh, [n_rows][3]; null: relaxation-time
  /// only.
  std::function<std::vector<double>(std::size_t t, const std::vector<double>& f)> in_scattering;
  /// The rates that belong to in_scattering, if they differ from rate_per_ps (symmetric form).
  std::function<std::vector<double>(std::size_t t)> diagonal_per_ps;
  bool symmetric = false;
};

/// Results at one temperature.
struct TemperatureResult {
  double temperature_k = 0.0;
  std::vector<double> rate_per_ps;   ///< [n_rows] w of the relaxation-time approximation
  std::vector<double> field_rta;     ///< [n_rows][3]
  std::vector<Mat3> mode_kappa_rta;  ///< [n_rows]
  Mat3 kappa_rta_w_per_mk{};
  std::vector<Mat3> mode_kappa_subspace;  ///< [n_rows] κ_Δ, a part of both mode_kappa…
  Mat3 kappa_subspace_w_per_mk{};
  bool converged = false;  ///< the rest is filled
  IterativeSolution solution;
  std::vector<double> final_rate_per_ps;  ///< [n_rows] ω v²/(F·v)
  std::vector<Mat3> mode_kappa;
  Mat3 kappa_w_per_mk{};
  double heat_capacity_j_m3_k = 0.0;
  Mat3 small_grain_w_per_mk_nm{};
};

/// One run: harmonic modes, rates and κ at every temperature. Rows are irreducible points ×
/// branches.
struct ConductivityRun {
  Modes modes;
  std::vector<double> isotope_per_ps;   ///< [n_rows]; empty without isotopes
  std::vector<double> boundary_per_ps;  ///< [n_rows]; empty without a boundary
  ThreePhononRates three_phonon;        ///< empty with onlyharmonic
  std::vector<TemperatureResult> by_temperature;
  /// [nT] standard error of the trace of κ in relaxation-time approximation over it; empty where no
  /// rate is sampled.
  std::vector<double> kappa_relative_error;
  std::vector<std::string> warnings;
  std::map<std::string, double> seconds;  ///< wall time by phase
};

/// Computes the modes of a model. The run gathers the time and the warnings of model and modes.
ConductivityRun start_run(const LatticeModel& model, const HarmonicOptions& options,
                          Progress& progress);

/// Adds a warning where k_BT of the lowest temperature is below the typical width of δ.
/// @param scale_broad  sb of three phonons
void warn_of_cold(const TransportOptions& options, double scale_broad, ConductivityRun& run);

/// The receiver of progress reports, the devices that sample three-phonon rates and the place of
/// their checkpoint.
struct SamplingSite {
  Progress& progress;
  std::vector<Device> devices = {Device{}};
  std::filesystem::path checkpoint_directory = {};
};

/// Adds the rates of three phonons, isotopes and boundaries at all temperatures. The kernels keep
/// the list of processes where the BTE is to be iterated.
/// @param transport  its modes are those of the run
void add_scattering(const Transport& transport, const RateOptions& options,
                    ThreePhononSums& kernels, ThreePhononProblem& problem, ConductivityRun& run,
                    const SamplingSite& site);

/// The terms of the linearised BTE: phonons, and the scattering that takes part in it.
struct BteTerms {
  const Transport& transport;
  const SparseForceConstants& third_order;
  ThreePhononSums& three_phonon;     ///< loaded, with the rates of add_scattering
  const FurtherScattering& further;  ///< four phonons
};

/// The receiver of progress reports, the checkpoint and the ranks of an iteration.
struct RunSite {
  Progress& progress;
  Checkpoint* checkpoint;  ///< null: nothing is kept
  Ranks& ranks;

  RunSite(Progress& reported, Checkpoint* kept = nullptr, Ranks& shared = one_rank())
      : progress(reported), checkpoint(kept), ranks(shared) {}
};

/// Computes κ from the rates at temperature number `t`, in relaxation-time approximation and, where
/// the options enable the iteration, from the linearised BTE (docs/theory/thermal.md 8). With a
/// checkpoint, an iteration of an earlier attempt is replayed up to the step at which it ended.
/// @throws NotConverged as solve_bte.
TemperatureResult conductivity_at(std::size_t t, const BteTerms& terms, ConductivityRun& run,
                                  const RunSite& site);

/// Adds conductivity_at of every temperature to the run.
void add_conductivity(const BteTerms& terms, ConductivityRun& run, const RunSite& site);

/// Factor from the κ of a cell to the κ of a sheet: the height of the cell over the thickness. It
/// is 1 for bulk crystals.
double sheet_factor(const Crystal& crystal, const SheetOptions& options);

}  // namespace quasi::thermal
