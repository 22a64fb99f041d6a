#pragma once

#include <cmath>

#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {

/// Distance of two energies below which their divided difference is formed in closed form. The
/// quotient of differences would lose more than nine digits there.
inline constexpr double kCloseEnergies_ry = 1e-3;

/// Returns (F(E − a) − F(E − b))/(a − b) of the pole factor F of two bands of one occupation with
/// energies a and b (docs/theory/gw.md 14.2). Both factors are c/d with d = E − a ± ω̃, so that the
/// difference is c/(d_a d_b), which is exact at a = b too. Where a rule near the poles treats the
/// two bands differently, the rule of band a holds for both.
/// @param at_a, at_b  pole_quotient() of the two bands
/// @param a_minus_b_ry  a − b
inline double pole_difference(const PoleQuotient& at_a, const PoleQuotient& at_b,
                              double a_minus_b_ry) {
  const double expected = at_a.denominator + a_minus_b_ry;
  const bool same_branch =
      at_a.numerator == at_b.numerator &&
      std::abs(at_b.denominator - expected) <= 1e-9 * (1.0 + std::abs(expected));
  const double other = same_branch ? at_b.denominator : expected;
  return at_a.numerator / (at_a.denominator * other);
}

}  // namespace quasi::gw
