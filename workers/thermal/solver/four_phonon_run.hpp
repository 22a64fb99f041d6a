#pragma once

#include <filesystem>

#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/solver/conductivity_run.hpp"
#include "workers/thermal/solver/scattering_4ph.hpp"

namespace quasi::thermal {

/// What one run computes with four phonons beside ConductivityRun.
struct FourPhononRun {
  Rates4ph rates;            ///< of the irreducible points; averaged over degenerate sets where the
                             ///< control says so
  Rules4ph rules;
  std::int64_t n_blocks = 0;
  FurtherScattering further; ///< for add_conductivity
};

/// @throws InvalidInput for what the keys of the reference allow and four phonons here do not do yet:
///         iterated four-phonon scattering, sampling, strategies other than the factorised one.
void require_supported_4ph(const Control& control);

/// Four-phonon rates of a deck that has fourth-order constants; times go to run.seconds.
/// @throws InvalidInput when a rate is not finite, OutOfMemory before starting when the plan does not
///         fit (need and budget in the message), and what the kernels throw.
FourPhononRun run_four_phonon(const Deck& deck, const Device& device, ConductivityRun& run,
                              const std::filesystem::path& checkpoint_directory, Progress& progress);

}  // namespace quasi::thermal
