#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi::gw {

/// The factor f = ω̃ F of one term of Σ (physics/plasmon_pole.hpp) with its derivatives by τ =
/// 1/ω̃ and by x = E − E_n. A term of Σ is M B f M* with B = ½ I v̄.
///
/// Every rule has f = ω̃/(x ± ω̃) or 0. Hence, without regard to the sign,
///
///   ∂f/∂τ = −x f²,   ∂f/∂x = −τ f²,   ∂²f/∂x∂τ = (2xτf − 1) f²
///
/// (docs/theory/gw.md 9.3). All four are finite for a static element, τ = 0.
struct PoleResponse {
  double value, by_tau, slope, slope_by_tau;
};
QUASI_HD inline PoleResponse pole_response(double f, double x_ry, double tau_per_ry) {
  const double square = f * f;
  return {f, -x_ry * square, -tau_per_ry * square, (2.0 * x_ry * tau_per_ry * f - 1.0) * square};
}

/// Returns f of a term that crosses no pole. @param side  1 for an occupied band, −1 for an empty
/// one
QUASI_HD inline double smooth_pole_value(double x_ry, double tau_per_ry, double side) {
  return 1.0 / (x_ry * tau_per_ry + side);
}

/// f of an occupied band far from its pole, and SX − X, from one reciprocal (docs/theory/gw.md
/// 6.2). SX − X is the whole f for poles near x, low ≤ τ ≤ high, where CH is dropped.
struct SplitPoleValues {
  double total, screened_exchange;
};
QUASI_HD inline SplitPoleValues split_pole_values(double x_ry, double tau_per_ry, double low_tau,
                                                  double high_tau) {
  const double plus = 1.0 + x_ry * tau_per_ry, minus = 1.0 - x_ry * tau_per_ry;
  const bool near = (tau_per_ry >= low_tau) & (tau_per_ry <= high_tau);
  const double r = 1.0 / (near ? plus : plus * minus);
  return {near ? r : minus * r, near ? r : 2.0 * r};
}

}  // namespace quasi::gw
