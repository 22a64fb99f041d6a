#pragma once

#include <cstdint>

namespace quasi::thermal {

/// Estimator of sampled rates.
enum class Sampling {
  kUniform,   ///< the estimator of FourPhonon: tuples from the box of indices
  kByWeight,  ///< processes, with a probability that grows with their exact weight
};

/// Settings of the sampling of rates of one order of phonons (docs/theory/thermal.md 10).
struct SamplingOptions {
  bool enabled = false;  ///< false: rates are sums over all processes
  Sampling estimator = Sampling::kByWeight;
  std::int64_t draws = 0;              ///< ≤ 0: a first number that the target raises
  std::int64_t phase_space_draws = 0;  ///< ≤ 0: none besides those of the rates
  double target_kappa_error = 0.0;     ///< relative error of κ that ends the sampling; 0: none
  double target_of_order = 0.0;        ///< share of target_kappa_error that this order may take
  std::uint64_t seed = 1;
};

}  // namespace quasi::thermal
