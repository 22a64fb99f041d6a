#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {

/// Returns F0(η) = ∫₀^∞ dt / (1+e^{t−η}) = ln(1+e^η), without overflow for large η
/// (docs/theory/mosfet.md 7).
QUASI_HD inline double fermi_integral_0(double eta) {
  return eta > 0.0 ? eta + log1p(exp(-eta)) : log1p(exp(eta));
}

/// Returns F1(η) = ∫₀^∞ t dt / (1+e^{t−η}) = −Li₂(−e^η), to 1e-15 relative
/// (docs/theory/mosfet.md 7).
///
/// For η ≤ 0 it uses Landen's identity −Li₂(−x) = Li₂(y) + ½ln²(1+x), y = x/(1+x) ≤ ½, whose series
/// gains one bit with each term. For η > 0 it uses the reflection F1(η) = η²/2 + π²/6 − F1(−η).
QUASI_HD inline double fermi_integral_1(double eta) {
  if (eta > 0.0) return 0.5 * eta * eta + units::kPi * units::kPi / 6.0 - fermi_integral_1(-eta);
  const double x = exp(eta);
  const double y = x / (1.0 + x);
  double power = 1.0, dilogarithm = 0.0;
  for (int k = 1; k <= 60; ++k) {
    power *= y;
    const double term = power / (static_cast<double>(k) * k);
    dilogarithm += term;
    if (term < 1e-17 * dilogarithm) break;
  }
  const double logarithm = log1p(x);
  return dilogarithm + 0.5 * logarithm * logarithm;
}

/// Returns 1/(1+e^{−η}).
QUASI_HD inline double fermi_function(double eta) {
  return eta > 0.0 ? 1.0 / (1.0 + exp(-eta)) : exp(eta) / (1.0 + exp(eta));
}

}  // namespace quasi::mosfet
