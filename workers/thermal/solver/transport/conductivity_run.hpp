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
#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
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

/// Everything computed at one temperature.
struct TemperatureResult {
  double temperature_k = 0.0;
  std::vector<double> rate_per_ps;   ///< [n_rows] w of the relaxation-time approximation
  std::vector<double> field_rta;     ///< [n_rows][3]
  std::vector<Mat3> mode_kappa_rta;  ///< [n_rows]
  Mat3 kappa_rta_w_per_mk{};
  bool converged = false;  ///< the rest is filled
  IterativeSolution solution;
  std::vector<double> final_rate_per_ps;  ///< [n_rows] ω v²/(F·v)
  std::vector<Mat3> mode_kappa;
  Mat3 kappa_w_per_mk{};
  double heat_capacity_j_m3_k = 0.0;
  Mat3 small_grain_w_per_mk_nm{};
};

/// One run: harmonic modes, rates, κ at every temperature. Rows are irreducible points × branches.
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

/// Modes of a deck, timed; warnings of deck and modes are gathered in the run.
ConductivityRun start_run(const Deck& deck, Progress& progress);

/// The devices that sample three-phonon rates, and the place of their checkpoint.
struct SamplingSite {
  std::vector<Device> devices = {Device{}};
  std::filesystem::path checkpoint_directory = {};
};

/// Three-phonon rates, isotopes and boundaries, at all temperatures of the deck. The kernels keep
/// the list of processes when the deck wants the BTE iterated.
void add_scattering(const Deck& deck, ThreePhononSums& kernels, ThreePhononProblem& problem,
                    ConductivityRun& run, Progress& progress, const SamplingSite& site = {});

/// Where an iteration reports its progress, keeps its state and finds the other ranks.
struct RunSite {
  Progress& progress;
  Checkpoint* checkpoint;  ///< null: nothing is kept
  Ranks& ranks;

  RunSite(Progress& reported, Checkpoint* kept = nullptr, Ranks& shared = one_rank())
      : progress(reported), checkpoint(kept), ranks(shared) {}
};

/// κ from the rates at temperature number `t` of the deck, in relaxation-time approximation and,
/// with `convergence`, from the linearised BTE (docs/theory/thermal.md 8). With a checkpoint, an
/// iteration of an earlier attempt is replayed up to the step at which it ended.
/// @throws NotConverged as solve_bte.
TemperatureResult conductivity_at(std::size_t t, const Deck& deck, ThreePhononSums& kernels,
                                  const FurtherScattering& further, ConductivityRun& run,
                                  const RunSite& site);

/// Adds conductivity_at of every temperature of the deck to the run.
void add_conductivity(const Deck& deck, ThreePhononSums& kernels, const FurtherScattering& further,
                      ConductivityRun& run, const RunSite& site);

/// Factor from the κ of a cell to the κ of a sheet of `sheet_thickness_nm`: the height of the cell
/// over the thickness. It is 1 for bulk crystals.
double sheet_factor(const Deck& deck);

}  // namespace quasi::thermal
