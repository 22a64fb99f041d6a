#pragma once

#include <vector>

#include "workers/thermal/input/force_constants/constants_covariance.hpp"

namespace quasi::thermal {

/// Standard error of κ that follows from the covariance C of the parameters of the third-order
/// constants, to first order: δκ = √(gᵀ C g) with g_i = Σ_b B_bi ∂κ/∂Φ_b (docs/theory/thermal.md
/// 16).
struct ConstantsError {
  std::vector<double> gradient;  ///< [n] g, W/m/K per unit of each parameter
  double kappa_w_per_mk = 0.0;   ///< δκ
};

/// @param derivative  [n_blocks][27] ∂κ/∂Φ, W/m/K per eV/Å³
/// @throws InvalidInput if gᵀ C g is negative beyond rounding: no covariance is like that.
ConstantsError kappa_error_of_constants(const ConstantsCovariance& covariance,
                                        const std::vector<double>& derivative);

}  // namespace quasi::thermal
