#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

namespace quasi::gw {

/// What χ_GG' is multiplied by in ε_GG' = δ_GG' − factor · χ_GG'. Where v > 0 everywhere ε̃ = 1 − v½
/// χ v½ is inverted, which is Hermitian, and ε⁻¹_GG' = v_G½ ε̃⁻¹_GG' v_G'^−½; else ε = 1 − v χ
/// itself.
QUASI_HD inline double dielectric_factor(double v, double v_other, bool positive) {
  return positive ? std::sqrt(v) * std::sqrt(v_other) : v;
}

/// What the inverse is multiplied by afterwards.
QUASI_HD inline double inverse_factor(double v, double v_other, bool positive) {
  return positive ? std::sqrt(v) / std::sqrt(v_other) : 1.0;
}

}  // namespace quasi::gw
