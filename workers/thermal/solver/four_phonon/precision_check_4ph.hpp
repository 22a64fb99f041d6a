#pragma once

#include <cstdint>

#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/three_phonon/precision_check.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// How far four-phonon rates of mixed precision lie from those of FP64, on some tiles of total
/// momenta summed with both.
struct SampledErrors4ph {
  std::int64_t tiles = 0;
  /// [n_temperatures][n_rows] δw/w of what the sample's processes add to each rate, over all
  /// channels; 0 where it has none of the row.
  std::vector<double> relative;
};

/// @param mixed    a problem of mixed precision; loaded into `kernels` when this returns
/// @param kernels  not in use otherwise
SampledErrors4ph sample_precision_4ph(const Deck& deck, const Modes& modes, const Problem4ph& mixed,
                                      ScatteringKernels4ph& kernels);

/// The same as measure_precision: largest and mean error of a rate, and what κ in relaxation-time
/// approximation changes by if the whole rates are as far off as the sample's share of them.
PrecisionError measure_precision_4ph(const ConductivityRun& run, const Rates4ph& rates,
                                     const SampledErrors4ph& errors);

}  // namespace quasi::thermal
