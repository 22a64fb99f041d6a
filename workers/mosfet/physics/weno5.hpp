#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet {

/// a/b as the language has it.
struct ExactQuotient {
  QUASI_HD double operator()(double a, double b) const { return a / b; }
};

/// Five neighbouring node values with the wind from `a` to `e`; `c` lies upwind of the half node.
/// For the other wind direction the stencil is mirrored.
struct WenoStencil {
  double a, b, c, d, e;
};

/// Fifth-order WENO value at the half node after c, from five node values with the wind from a to e
/// (Jiang and Shu). For the other wind direction pass the mirrored stencil.
///
/// Written in differences of neighbours, as c plus a correction: q0 = c + (5Δ₂−2Δ₁)/6,
/// q1 = c + (2Δ₃+Δ₂)/6, q2 = c + (4Δ₃−Δ₄)/6. The weights ω_r ∝ d_r/(ε_W+β_r)² are formed as
/// d_r Π_{s≠r} B_s, so that one division serves all three. B = ¾(ε_W+β): common factors cancel.
/// With 3β0 = 4Δ₁²−11Δ₁Δ₂+10Δ₂², 3β1 = 4Δ₂²−5Δ₂Δ₃+4Δ₃² (β2 is β0 mirrored) it takes four operations
/// fewer than the sums of squares, and as positive definite forms of condition 18 they lose no
/// digits. Odd in its arguments: reversing all signs reverses the result bit for bit.
///
/// See docs/theory/mosfet.md 5.3 for the equations.
/// @param epsilon  ε_W; 1e-12 for a pdf scaled to max 1. With the customary 1e-6 the weights are
///                 linear wherever Φ < 1e-3, and undershoots reach −2e-3.
/// @param divide   the one division; a back end may pass one without special cases
template <typename Quotient = ExactQuotient>
QUASI_HD inline double weno5(WenoStencil s, double epsilon, Quotient divide = {}) {
  constexpr double kSixth = 1.0 / 6.0;
  const double d1 = s.b - s.a, d2 = s.c - s.b, d3 = s.d - s.c, d4 = s.e - s.d;
  const double tiny = 0.75 * epsilon;
  const double b0 = (tiny + d1 * d1) + d2 * (2.5 * d2 - 2.75 * d1);
  const double b1 = (tiny + d2 * d2) + d3 * (d3 - 1.25 * d2);
  const double b2 = (tiny + d4 * d4) + d3 * (2.5 * d3 - 2.75 * d4);
  const double t0 = b1 * b2, t1 = b0 * b2, t2 = b0 * b1;
  const double w0 = t0 * t0, w1 = 6.0 * t1 * t1, w2 = 3.0 * t2 * t2;
  const double sum = w0 * (5.0 * d2 - 2.0 * d1) + w1 * (2.0 * d3 + d2) + w2 * (4.0 * d3 - d4);
  return s.c + kSixth * divide(sum, w0 + w1 + w2);
}

}  // namespace quasi::mosfet
