#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "workers/backend/ranks/ranks.hpp"
#include "workers/thermal/model/four_phonon_options.hpp"
#include "workers/thermal/solver/four_phonon/collision_4ph.hpp"
#include "workers/thermal/solver/four_phonon/precision_check_4ph.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Results of four phonons in one run. The object does not move, because `further` refers to its
/// parts.
struct FourPhononRun {
  FourPhononRun() = default;
  FourPhononRun(const FourPhononRun&) = delete;
  FourPhononRun& operator=(const FourPhononRun&) = delete;

  FourPhononOptions options;
  Rates4ph rates;  ///< of the irreducible points; averaged over degenerate sets as the options say
  /// [n_temperatures] standard error of the trace of κ in relaxation-time approximation over it,
  /// from the errors of the four-phonon rates alone; empty where nothing is sampled.
  std::vector<double> kappa_relative_error;
  std::optional<SampledErrors4ph>
      precision_errors;  ///< of the rates, on the leading rank; with precision = mixed
  Rules4ph rules;
  std::int64_t n_blocks = 0;
  FurtherScattering further;  ///< for add_conductivity
  Problem4ph problem;
  std::vector<std::unique_ptr<ScatteringKernels4ph>> kernels;  ///< one for each device
  std::unique_ptr<ReadySums4ph> ready;      ///< of the kernels; null once used, or if not begun
  std::unique_ptr<Collision4ph> collision;  ///< with options.iteration
};

/// The devices and ranks that compute four-phonon sums, and the place of their checkpoint.
struct FourPhononSite {
  std::vector<Device> devices = {Device{}};
  Ranks& ranks = one_rank();
  std::filesystem::path checkpoint_directory = {};
};

class FourPhononStart;

/// Computes four-phonon rates on all devices of all ranks, which call it at the same time, and
/// prepares the part of four phonons in the collision operator where `options.iteration` asks for
/// it. Times go to run.seconds. The result refers to symmetry and modes of `transport` and to
/// `progress`, which must outlive it.
/// @throws InvalidInput when a rate is not finite, OutOfMemory before starting when the plan does
///         not fit (need and budget in the message), and what the kernels throw.
std::unique_ptr<FourPhononRun> run_four_phonon(const Transport& transport,
                                               const SparseForceConstants& fourth_order,
                                               const FourPhononOptions& options,
                                               const FourPhononSite& site, ConductivityRun& run,
                                               Progress& progress);
/// Does so with a problem and kernels that were begun before.
/// @param begun  of the same transport and devices; its result is taken
std::unique_ptr<FourPhononRun> run_four_phonon(const Transport& transport, FourPhononStart& begun,
                                               const FourPhononSite& site, ConductivityRun& run,
                                               Progress& progress);

/// Makes the four-phonon scattering of a run for solve_bte with the rows of a smaller symmetry,
/// that of a wire. It has kernels of its own, which the result keeps alive. It needs a run whose
/// operator is symmetric.
/// @param along  symmetry of the wire
/// @param bulk   of the run
FurtherScattering iterated_with(const Symmetry& along, const Transport& bulk,
                                const SparseForceConstants& fourth_order,
                                const std::vector<Device>& devices,
                                const FourPhononRun& four_phonon, Progress& progress);

}  // namespace quasi::thermal
