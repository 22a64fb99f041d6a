#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

namespace quasi::thermal {

/// Uniform draws for each mode and channel of a deck that gives no number.
inline constexpr std::int64_t kFirstUniformDraws4ph = 10000;

/// Numbers of uniform draws for each mode and channel.
struct UniformDraws4ph {
  std::uint64_t seed;
  std::int64_t rates;         ///< for the rates; 0: phase spaces only
  std::int64_t phase_spaces;  ///< > 0, for phase spaces and counts; where it differs from `rates`,
                              ///< these draws evaluate no matrix elements
};

/// Estimates four-phonon rates and their standard errors from tuples drawn uniformly from the box
/// of indices, as FourPhonon does: Γ = box·mean. Draws are shared out among the devices by number
/// in blocks of fixed size, so that any number of devices gives the same bits.
Rates4ph uniform_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                            const UniformDraws4ph& draws, const Team4ph& team, Progress& progress,
                            const CheckpointRule& checkpoint_rule = {});

/// Number of draws by weight, and when they are enough.
struct WeightedDraws4ph {
  std::uint64_t seed;
  std::int64_t first;  ///< matrix elements for each mode and channel at first
  /// While it returns false, the number of draws is doubled. A larger sample contains the smaller
  /// one.
  std::function<bool(const Rates4ph&)> good_enough;
};

/// Estimates four-phonon rates from processes drawn by their exact weight. Phase spaces and counts
/// are exact. Γ = Σ|W| · Σ(y/p)/Σ(|W|/p) with y = W|V|².
Rates4ph weighted_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                             const WeightedDraws4ph& draws, const Team4ph& team, Progress& progress,
                             const CheckpointRule& checkpoint_rule = {});

}  // namespace quasi::thermal
