#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

namespace quasi::thermal {

/// Four-phonon rates with standard errors from `draws` tuples for each mode and channel, drawn
/// uniformly from the box of indices (the published estimator): Γ = box·mean. Draws are shared out
/// among the devices by number in blocks of fixed size, so that any number of devices gives the
/// same bits.
/// @param phase_space_draws  of the phase spaces and counts, > 0; without matrix elements where it
/// exceeds
///                           `draws` (0: phase spaces only)
Rates4ph uniform_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                            std::uint64_t seed, std::int64_t draws, std::int64_t phase_space_draws,
                            const Team4ph& team, Progress& progress,
                            const CheckpointRule& checkpoint_rule = {});

/// The same from processes drawn by their exact weight: about `draws` matrix elements for each mode
/// and channel; phase spaces and counts are exact. Γ = Σ|W| · Σ(y/p)/Σ(|W|/p), y = W|V|².
///
/// `good_enough` sees the rates; while it says no, twice as many processes are drawn, the former
/// among them.
Rates4ph weighted_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                             std::uint64_t seed, std::int64_t draws,
                             const std::function<bool(const Rates4ph&)>& good_enough,
                             const Team4ph& team, Progress& progress,
                             const CheckpointRule& checkpoint_rule = {});

}  // namespace quasi::thermal
