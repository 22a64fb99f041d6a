#pragma once

#include <cstdint>

#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/three_phonon/precision_check.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Differences between four-phonon rates of mixed precision and of FP64, on some tiles of total
/// momenta that are summed with both.
struct SampledErrors4ph {
  std::int64_t tiles = 0;
  /// [n_temperatures][n_rows] δw/w of the part of each rate that comes from the sample, over all
  /// channels; 0 where the sample has no process of the row.
  std::vector<double> relative;
};

/// Sums a sample of tiles with both precisions.
/// @param mixed    a problem of mixed precision; loaded into `kernels` when this returns
/// @param kernels  not in use otherwise
SampledErrors4ph sample_precision_4ph(const FourPhononOptions& options, const Modes& modes,
                                      const Problem4ph& mixed, ScatteringKernels4ph& kernels);

/// Computes the PrecisionError of four phonons: the largest and the mean error of a rate, and the
/// change of κ in relaxation-time approximation if whole rates are as far off as the sample.
PrecisionError measure_precision_4ph(const ConductivityRun& run, const Rates4ph& rates,
                                     const SampledErrors4ph& errors);

}  // namespace quasi::thermal
