#pragma once

namespace quasi::thermal {

/// Returns the contribution of one ordered pair of modes at one wave vector to the Wigner
/// conductivity (docs/theory/thermal.md 13) [simoncelli2022]. It omits ħ²/(k_BT²VN_q) and the
/// velocities v^α_ss' v^β_s's; in rad²/ps:
///
///   ½(ω+ω') [ω n(n+1) + ω' n'(n'+1)] (w+w') / (4(ω−ω')² + (w+w')²)
///
/// w are full linewidths, 1/ps. Two equal modes give ω² n(n+1)/w, the term of the population.
/// @param weight, weight_other  n(n+1)
inline double wigner_pair_weight(double omega, double omega_other, double weight,
                                 double weight_other, double rate, double rate_other) {
  const double width = rate + rate_other;
  if (!(width > 0.0)) return 0.0;
  const double apart = omega - omega_other;
  return 0.5 * (omega + omega_other) * (omega * weight + omega_other * weight_other) * width /
         (4.0 * apart * apart + width * width);
}

/// Returns the derivative of wigner_pair_weight by the sum w + w' of the rates, in rad²:
///
///   ½(ω+ω') [ω n(n+1) + ω' n'(n'+1)] (4(ω−ω')² − (w+w')²) / (4(ω−ω')² + (w+w')²)²
///
/// @param weight, weight_other  n(n+1)
/// @param width                 w + w', 1/ps
inline double wigner_pair_slope(double omega, double omega_other, double weight,
                                double weight_other, double width) {
  if (!(width > 0.0)) return 0.0;
  const double apart = 4.0 * (omega - omega_other) * (omega - omega_other);
  const double square = width * width;
  return 0.5 * (omega + omega_other) * (omega * weight + omega_other * weight_other) *
         (apart - square) / ((apart + square) * (apart + square));
}

}  // namespace quasi::thermal
