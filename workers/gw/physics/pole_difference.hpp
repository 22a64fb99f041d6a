#pragma once

#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {

/// Distance of two energies below which their divided difference is formed in closed form. The
/// quotient of differences would lose more than nine digits there.
inline constexpr double kCloseEnergies_ry = 1e-3;
/// Distance of two energies below which the states count as one multiplet.
inline constexpr double kMultipletEnergies_ry = 1e-6;

/// Returns (F(E − a) − F(E − b))/(a − b) of the pole factor F of two bands of one occupation with
/// energies a and b (docs/theory/gw.md 14.2), whose division is left to the caller. Both factors
/// are c/d with d = E − a ± ω̃, so that the difference is c/(d_a d_b), which is exact at a = b
/// too. Where a rule near the poles treats the two bands differently, the rule of band a holds for
/// both.
/// @param at_a, at_b  pole_quotient() of the two bands
/// @param a_minus_b_ry  a − b
QUASI_HD inline PoleQuotient pole_difference_quotient(const PoleQuotient& at_a,
                                                      const PoleQuotient& at_b,
                                                      double a_minus_b_ry) {
  const double expected = at_a.denominator + a_minus_b_ry;
  const double size = expected < 0.0 ? -expected : expected;
  const double departure = at_b.denominator - expected;
  const bool same_branch = at_a.numerator == at_b.numerator &&
                           (departure < 0.0 ? -departure : departure) <= 1e-9 * (1.0 + size);
  return {at_a.numerator, at_a.denominator * (same_branch ? at_b.denominator : expected)};
}
QUASI_HD inline double pole_difference(const PoleQuotient& at_a, const PoleQuotient& at_b,
                                       double a_minus_b_ry) {
  return pole_difference_quotient(at_a, at_b, a_minus_b_ry).value();
}

}  // namespace quasi::gw
