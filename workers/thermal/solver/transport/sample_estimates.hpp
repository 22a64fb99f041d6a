#pragma once

#include <algorithm>
#include <cmath>

#include "workers/thermal/kernels/sample_layout.hpp"

namespace quasi::thermal {

/// Estimate of ΣW|V|² of one row, channel and temperature from a sample.
struct SampledSum {
  double value = 0.0;
  double normal = 0.0;  ///< its part without a reciprocal vector
  double error = 0.0;   ///< standard error of the value
};

/// Estimates the sum from `draws` uniform draws of a box: box · mean, with the error that follows
/// from the scatter of the draws.
inline SampledSum uniform_estimate(const UniformLayout& layout, const double* sums, int t,
                                   double draws, double box) {
  const double mean = sums[layout.rate(t)] / draws;
  const double variance = std::max(0.0, sums[layout.square(t)] / draws - mean * mean);
  return {box * mean, box * sums[layout.normal(t)] / draws,
          box * std::sqrt(variance / std::max(1.0, draws - 1.0))};
}

/// Estimates the sum from processes drawn by a weight u: Σu · Σ(y/p)/Σ(u/p) with y = W|V|².
/// Fluctuations that both sums of the ratio share do not enter its error.
/// @param weight_sum  Σu over all processes
inline SampledSum ratio_estimate(const ThinnedLayout& layout, const double* sums, int t,
                                 double weight_sum) {
  const double drawn = sums[layout.weight(t)];
  if (!(drawn > 0.0)) return {};
  const double scale = weight_sum / drawn;
  const double ratio = sums[layout.rate(t)] / drawn;
  const double spread = sums[layout.spread_rate(t)] - 2.0 * ratio * sums[layout.spread_both(t)] +
                        ratio * ratio * sums[layout.spread_weight(t)];
  return {scale * sums[layout.rate(t)], scale * sums[layout.normal(t)],
          scale * std::sqrt(std::max(0.0, spread))};
}

}  // namespace quasi::thermal
