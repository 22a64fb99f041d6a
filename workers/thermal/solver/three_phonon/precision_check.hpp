#pragma once

#include <cstdint>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Rates below this share of the largest vanish by symmetry and consist of rounding. Their relative
/// differences have no meaning.
inline constexpr double kVanishingRate = 1e-10;

/// Differences between rates of mixed precision and of FP64, on a sample of points computed with
/// both.
struct PrecisionError {
  std::int64_t sampled_rows = 0;
  double largest_rate_error =
      0.0;  ///< largest |δw|/w of a row that does not vanish, any temperature
  double rms_rate_error = 0.0;
  /// |Σ κ_λ δw/w| / Σ κ_λ over the sample: the relative change of κ in relaxation-time
  /// approximation; the largest of all temperatures.
  double kappa_error = 0.0;
};

/// Measures the error of rates and κ on a sample of points.
/// @param run  of add_conductivity, with rates of `problem` in mixed precision
PrecisionError measure_precision(const TransportOptions& options, const ThreePhononProblem& problem,
                                 const ConductivityRun& run, const Device& device);

}  // namespace quasi::thermal
