#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/input/deck.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/bands/band_interpolation.hpp"
#include "workers/gw/solver/calculation/self_test.hpp"
#include "workers/gw/solver/screening/epsilon_file.hpp"
#include "workers/gw/solver/self_energy/dyson.hpp"
#include "workers/gw/solver/self_energy/graphical.hpp"
#include "workers/gw/solver/self_energy/outer_loop.hpp"

namespace quasi::gw {

/// What a deck comes to once its files are read: counts made consistent, with a note on each
/// change.
struct Plan {
  EpsilonOptions epsilon;
  SigmaOptions sigma;
  DerivativeRule derivative;
  std::size_t spectrum_offset =
      0;  ///< first of SigmaOptions::offsets_ry that belongs to the spectra
  std::vector<std::string> notes;       ///< what was repaired, in sentences
  std::optional<StoredEpsilon> stored;  ///< ε⁻¹ comes from files
  double epsilon_gflop = 0.0;           ///< of the products of χ
  double sigma_evaluations = 0.0;       ///< (G, G', n, E, l, q) of the plasmon-pole sum
  std::int64_t memory_bytes = 0;        ///< largest resident set of the device
  std::int64_t least_memory_bytes = 0;  ///< what of it no blocking makes less: matrices between
                                        ///< plane waves, each whole on one device
  std::int64_t screening_bytes =
      0;  ///< of the host at most: ε⁻¹ of all q, and W of the q that Σ is at
  std::int64_t subspace_vectors = 0;  ///< of ε⁻¹ in its static subspace at most; 0: it is whole
  double epsilon_seconds = 0.0,
         sigma_seconds = 0.0;  ///< expected (cost_estimate.hpp); 0: not estimated
};

struct Calculation {
  MeanField field;  ///< whose states Σ is of
  std::optional<MeanField>
      screening_field;  ///< whose ε⁻¹ it is, where the states are those of WFN_outer
  Plan plan;
  std::vector<DielectricMatrix> epsilon;
  std::vector<SelfEnergyAtK> sigma;
  std::vector<Quasiparticle> quasiparticles;
  std::vector<Spectrum> spectra;         ///< where asked for
  std::vector<SigmaMatrixAtK> matrices;  ///< full Σ_lm(E), where asked for
  std::vector<DysonState> dyson;         ///< its solutions, in the order of `quasiparticles`
  OffDiagonalReport matrix_report;
  OuterLoopReport outer;
  std::vector<PathBands> mean_field_bands,
      quasiparticle_bands;  ///< along sigma.band_path, one of each spin
  std::vector<std::vector<std::vector<double>>>
      band_share;          ///< [spin][band][point], CharacterBands::share; empty: bands by rank
  std::string band_order;  ///< how they were followed, and why, in words; empty: no path
  SigmaStatistics statistics;
  std::vector<SelfCheck> self_test;
  std::map<std::string, double>
      seconds;  ///< by phase; epsilon_…, sigma_… and so on are steps of it, added up over devices
};

MeanField load_mean_field(const Deck& deck, GwKernels& kernels, Progress& progress,
                          StepTimes* times = nullptr);

/// Pre-flight: band counts that split multiplets are lowered, wanted k-points are looked up, memory
/// and work are estimated. @throws InvalidInput for what cannot be repaired.
/// @param outer  the states Σ is of, where they are not those of `screening`
Plan make_plan(const Deck& deck, const MeanField& screening, std::int64_t memory_budget_bytes,
               const MeanField* outer = nullptr);

/// @throws OutOfMemory if a device of `limit_bytes` (0: not known) cannot hold the matrices; before
/// anything is calculated.
void require_room(const Plan& plan, std::int64_t limit_bytes);

/// What a job runs on and where it may leave finished pieces.
struct Workplace {
  DeviceTeam& team;
  std::int64_t memory_budget_bytes = 0;  ///< per device, for what is cut into blocks
  std::int64_t memory_limit_bytes = 0;   ///< per device, for what cannot be; 0: not known
  std::filesystem::path checkpoint_directory = {};  ///< empty: nothing is kept
};

/// The same from a mean field that is there already.
Calculation solve_mean_field(const Deck& deck, MeanField field, const Workplace& place,
                             Progress& progress);

/// Mean field to quasiparticle energies.
Calculation run_calculation(const Deck& deck, const Workplace& place, Progress& progress);
Calculation run_calculation(const Deck& deck, GwKernels& kernels, std::int64_t memory_budget_bytes,
                            Progress& progress);

}  // namespace quasi::gw
