#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/input/deck.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/bands/band_interpolation.hpp"
#include "workers/gw/solver/calculation/error_table.hpp"
#include "workers/gw/solver/calculation/plan.hpp"
#include "workers/gw/solver/calculation/self_test.hpp"
#include "workers/gw/solver/mean_field/load_mean_field.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/perturbation/wave_vector/wave_vector_elements.hpp"
#include "workers/gw/solver/self_energy/dyson.hpp"
#include "workers/gw/solver/self_energy/graphical.hpp"
#include "workers/gw/solver/self_energy/outer_loop.hpp"

// The folder workers/gw/solver/calculation runs a whole job. Begin here. plan.hpp resolves the deck
// into the options of each step, cost/ predicts its seconds, self_test.hpp checks the
// data, convergence_study.hpp repeats the job with other settings, and problem_digest.hpp names a
// checkpoint. The steps are in mean_field, screening, self_energy and bands.
namespace quasi::gw {

/// Statistical errors of the energies by a jackknife over blocks of random vectors
/// (docs/theory/gw.md 9.3). Energies are E_qp1, or Σ where V_xc is unknown.
struct PseudobandErrors {
  int blocks = 0;
  std::vector<double> estimate_ev;    ///< without the bias of first order, [n_quasiparticles]
  std::vector<double> half_width_ev;  ///< half of the 95 % interval, [n_quasiparticles]
  std::optional<double> gap_ev, gap_half_width_ev;  ///< without V_xc: change of the gap by Σ
  std::vector<double> bias_ev;                      ///< |pooled − estimate|, [n_quasiparticles]
  std::optional<double> gap_bias_ev;
  /// Bound of the error of the windows' energies, [n_quasiparticles]; empty: not examined.
  std::vector<double> window_width_ev;
};

/// Returns E_qp1, or Σ where V_xc is unknown.
inline double energy_ev(const Quasiparticle& qp) { return qp.qp1_ev ? *qp.qp1_ev : qp.sigma_ev; }

/// Everything that a job has calculated.
struct Calculation {
  MeanField field;  ///< mean field of the outer states
  /// Mean field of ε⁻¹ where the outer states are those of WFN_outer; else absent.
  std::optional<MeanField> screening_field;
  Plan plan;
  /// How pseudobands replace states of `field`; absent: they do not.
  std::optional<PseudobandPlan> pseudobands;
  std::optional<PseudobandErrors> pseudoband_errors;  ///< absent: not wanted
  ErrorTable errors;                                  ///< named errors of all energies
  std::vector<DielectricMatrix> epsilon;
  std::vector<SelfEnergyAtK> sigma;
  std::vector<Quasiparticle> quasiparticles;
  /// Change of the energies by the other rule of ZoneSum (zone_sum_change.hpp), in the order of
  /// `quasiparticles`; empty: there is none.
  std::vector<double> zone_sum_change_ev;
  /// Change of the energies if every second point of the sub-sampling is left out; empty without
  /// it.
  std::vector<double> subsampling_change_ev;
  std::vector<Spectrum> spectra;         ///< empty: none wanted
  std::vector<SigmaMatrixAtK> matrices;  ///< full Σ_lm(E); empty: not wanted
  std::vector<DysonState>
      dyson;  ///< solutions of the Dyson equation, in the order of `quasiparticles`
  OffDiagonalReport matrix_report;
  OuterLoopReport outer;
  std::optional<DisplacementElements> displacements;  ///< at q = 0; absent: not wanted
  std::optional<ModeElements> phonons;                ///< absent: no perturbation.modes
  std::vector<WaveVectorElements> wave_vectors;       ///< at the other q of perturbation.q
  std::vector<PathBands> mean_field_bands;            ///< along sigma.band_path, one of each spin
  std::vector<PathBands> quasiparticle_bands;         ///< along sigma.band_path, one of each spin
  /// CharacterBands::share, [spin][band][point]; empty: bands are ordered by rank.
  std::vector<std::vector<std::vector<double>>> band_share;
  std::string band_order;  ///< how the bands were followed, and why; empty: no path
  SigmaStatistics statistics;
  std::vector<SelfCheck> self_test;
  /// Laws that are violated and that the deck does not accept. Tables of energies then carry
  /// another name.
  std::vector<std::string> violated_laws;
  /// Seconds by phase. Names such as epsilon_… and sigma_… are steps of a phase, summed over
  /// devices.
  std::map<std::string, double> seconds;
};

/// The devices of a job, their memory, and the directory of its checkpoints.
struct Workplace {
  DeviceTeam& team;
  std::int64_t memory_budget_bytes = 0;  ///< per device, for work that is cut into blocks
  std::int64_t memory_limit_bytes = 0;   ///< per device, for matrices held whole; 0: not known
  std::int64_t host_limit_bytes = 0;     ///< memory that the host can give; 0: not known
  std::filesystem::path checkpoint_directory = {};  ///< empty: no checkpoints
};

/// The parts of a mean field that a deck needs.
MeanFieldDemand demand_of(const Deck& deck);

/// Plans a job and makes every check that a run makes before ε⁻¹, with the deck's files read whole.
/// @throws InvalidInput, OutOfMemory as a run of the deck would
Plan validated_plan(const Deck& deck, const Workplace& place, Progress& progress);

/// Calculates a deck from a mean field that is already loaded.
/// @throws InvalidInput, OutOfMemory, NotConverged, StorageError
Calculation solve_mean_field(const Deck& deck, MeanField field, const Workplace& place,
                             Progress& progress);

/// Calculates a deck, from the mean field to the quasiparticle energies.
/// @throws InvalidInput, OutOfMemory, NotConverged, StorageError
Calculation run_calculation(const Deck& deck, const Workplace& place, Progress& progress);
/// Calculates a deck on one device, without checkpoints.
Calculation run_calculation(const Deck& deck, GwKernels& kernels, std::int64_t memory_budget_bytes,
                            Progress& progress);

}  // namespace quasi::gw
