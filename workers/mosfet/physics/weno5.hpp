#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet {

/// Fifth-order WENO value at the half node after c, from five node values with the wind from a to e
/// (Jiang and Shu). For the other wind direction pass the mirrored stencil.
///
/// ω_r ∝ d_r / (ε_W + β_r)² is formed as d_r Π_{s≠r} B_s, so that one division serves all three
/// weights. Odd in its arguments: reversing all signs reverses the result bit for bit.
///
/// @param epsilon  ε_W; 1e-12 for a pdf scaled to max 1. With the customary 1e-6 the weights are
///                 linear wherever Φ < 1e-3, and undershoots reach −2e-3.
QUASI_HD inline double weno5(double a, double b, double c, double d, double e, double epsilon) {
  constexpr double kSixth = 1.0 / 6.0, kCurvature = 13.0 / 12.0;
  const double q0 = 2.0 * a - 7.0 * b + 11.0 * c;
  const double q1 = -b + 5.0 * c + 2.0 * d;
  const double q2 = 2.0 * c + 5.0 * d - e;
  const double c0 = a - 2.0 * b + c, s0 = a - 4.0 * b + 3.0 * c;
  const double c1 = b - 2.0 * c + d, s1 = b - d;
  const double c2 = c - 2.0 * d + e, s2 = 3.0 * c - 4.0 * d + e;
  const double b0 = epsilon + kCurvature * (c0 * c0) + 0.25 * (s0 * s0);
  const double b1 = epsilon + kCurvature * (c1 * c1) + 0.25 * (s1 * s1);
  const double b2 = epsilon + kCurvature * (c2 * c2) + 0.25 * (s2 * s2);
  const double w0 = 0.1 * ((b1 * b2) * (b1 * b2));
  const double w1 = 0.6 * ((b0 * b2) * (b0 * b2));
  const double w2 = 0.3 * ((b0 * b1) * (b0 * b1));
  return (w0 * q0 + w1 * q1 + w2 * q2) / (w0 + w1 + w2) * kSixth;
}

}  // namespace quasi::mosfet
