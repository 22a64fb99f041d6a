#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/solver/four_phonon/collision_4ph.hpp"
#include "workers/thermal/solver/four_phonon/precision_check_4ph.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// What one run computes with four phonons beside ConductivityRun. Stays where it is: `further`
/// refers to its parts.
struct FourPhononRun {
  FourPhononRun() = default;
  FourPhononRun(const FourPhononRun&) = delete;
  FourPhononRun& operator=(const FourPhononRun&) = delete;

  Rates4ph rates;  ///< of the irreducible points; averaged over degenerate sets where the
                   ///< control says so
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
  std::unique_ptr<Collision4ph> collision;                     ///< with four_phonon_iteration
};

/// @throws InvalidInput for a 'strategy' other than factorised together with four phonons.
void require_supported_4ph(const Control& control);

/// Four-phonon rates of a deck that has fourth-order constants, on all devices of all ranks
/// (together), and, where the deck wants four phonons iterated, their part of the collision
/// operator; times go to run.seconds. `progress` must outlive the result.
/// @throws InvalidInput when a rate is not finite, OutOfMemory before starting when the plan does
/// not
///         fit (need and budget in the message), and what the kernels throw.
std::unique_ptr<FourPhononRun> run_four_phonon(const Deck& deck, const std::vector<Device>& devices,
                                               Ranks& ranks, ConductivityRun& run,
                                               const std::filesystem::path& checkpoint_directory,
                                               Progress& progress);

/// The run's four phonons for solve_bte with the rows of a smaller symmetry (a wire's): computed
/// with kernels of its own, which what is returned keeps alive. Needs a run whose operator is
/// symmetric.
FurtherScattering iterated_with(const Symmetry& symmetry, const Deck& deck,
                                const std::vector<Device>& devices, const ConductivityRun& run,
                                const FourPhononRun& four_phonon, Progress& progress);

}  // namespace quasi::thermal
