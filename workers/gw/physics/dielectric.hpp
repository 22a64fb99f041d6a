#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

namespace quasi::gw {

/// Returns the factor of χ_GG' in ε_GG' = δ_GG' − factor · χ_GG' (docs/theory/gw.md 4)
/// [hybertsen1986]. If v > 0 everywhere, the Hermitian matrix ε̃ = 1 − v½ χ v½ is inverted, and
/// ε⁻¹_GG' = v_G½ ε̃⁻¹_GG' v_G'^−½. Otherwise ε = 1 − v χ itself is inverted.
QUASI_HD inline double dielectric_factor(double v, double v_other, bool positive) {
  return positive ? std::sqrt(v) * std::sqrt(v_other) : v;
}

/// Returns the factor by which the inverse is multiplied to give ε⁻¹.
QUASI_HD inline double inverse_factor(double v, double v_other, bool positive) {
  return positive ? std::sqrt(v) / std::sqrt(v_other) : 1.0;
}

}  // namespace quasi::gw
