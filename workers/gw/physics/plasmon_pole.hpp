#pragma once

#include <cmath>
#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"

namespace quasi::gw {

/// Plasmon-pole factors of one element (G, G') for x = E − E_n, to be multiplied by the strength A
/// = ½ I ω̃ v̄. Energies are in Ry; results are in 1/Ry. Both rules are those of docs/theory/gw.md
/// 6.2 in collapsed form. The generalised plasmon pole of Hybertsen and Louie [hybertsen1986] has
///
///   SX − X = −I ω̃²/(x² − ω̃²),   CH = ½ I ω̃/(x − ω̃),
///
/// whose sum is ½ I ω̃/(x + ω̃). The sum needs one reciprocal and has no cancellation at x ≈ ω̃,
/// where the separate terms diverge with opposite signs.

/// A factor as a quotient whose division is left to the caller, because some kernels have a faster
/// reciprocal than the compiler's. Its denominator is never near 0.
struct PoleQuotient {
  double numerator;
  double denominator;
  QUASI_HD double value() const { return numerator / denominator; }
};

/// Returns true within max(γ, ω̃/max_ratio) of the pole at x = ω̃, where CH is dropped.
QUASI_HD inline bool near_pole(double x_ry, double pole_ry, double half_width_ry,
                               double max_ratio) {
  const double y = x_ry - pole_ry;
  const double distance = y < 0 ? -y : y;
  return (distance <= half_width_ry) | (distance * max_ratio <= pole_ry);
}

/// Interval low ≤ ω̃ ≤ high of the poles for which a rule holds; it is empty if low > high. Both
/// rules near poles have this form for a given x, so that kernels with many elements of one x only
/// compare. At the very ends, rounding may decide otherwise than the formulas below.
struct PoleInterval {
  double low, high;
};
/// Returns the poles for which CH of an empty band is dropped: |x − ω̃| ≤ γ or |x − ω̃| max_ratio ≤
/// ω̃.
QUASI_HD inline PoleInterval dropped_empty(double x_ry, double half_width_ry, double max_ratio) {
  PoleInterval near{x_ry - half_width_ry, x_ry + half_width_ry};
  if (x_ry > 0.0) {
    const double low = x_ry * max_ratio / (max_ratio + 1.0);
    const double high = max_ratio > 1.0 ? x_ry * max_ratio / (max_ratio - 1.0) : HUGE_VAL;
    if (low < near.low) near.low = low;
    if (high > near.high) near.high = high;
  }
  if (near.low < 0.0) near.low = 0.0;
  return near;
}
/// Returns the poles for which SX − X of an occupied band is dropped: x < 0 and ω̃² > cut |x² −
/// ω̃²|. With cut = 1 an infinite ω̃ is not dropped, as in the limit.
QUASI_HD inline PoleInterval dropped_occupied(double x_ry, double cut) {
  if (!(x_ry < 0.0)) return {1.0, 0.0};
  const double high = cut > 1.0    ? -x_ry * std::sqrt(cut / (cut - 1.0))
                      : cut == 1.0 ? -x_ry * 1e8
                                   : HUGE_VAL;
  return {-x_ry * std::sqrt(cut / (1.0 + cut)), high};
}

/// Returns the factor of an empty band, 1/(x − ω̃), or 0 near the pole.
QUASI_HD inline PoleQuotient pole_quotient_empty(double x_ry, double pole_ry, double half_width_ry,
                                                 double max_ratio) {
  const bool dropped = near_pole(x_ry, pole_ry, half_width_ry, max_ratio);
  return {dropped ? 0.0 : 1.0, dropped ? 1.0 : x_ry - pole_ry};
}

/// Returns the factor of an occupied band, 1/(x + ω̃). If x < 0 and |ω̃²/(x² − ω̃²)| exceeds `cut`,
/// SX − X is dropped and CH alone, 1/(x − ω̃), remains.
QUASI_HD inline PoleQuotient pole_quotient_occupied(double x_ry, double pole_ry, double cut) {
  const double y = x_ry + pole_ry;
  const double z = x_ry - pole_ry;
  const double product = y * z;
  const bool dropped = (x_ry < 0) & (pole_ry * pole_ry > cut * (product < 0 ? -product : product));
  return {1.0, dropped ? z : y};
}

/// Returns SX − X of an occupied band alone, so that CH is the factor of the occupied band minus
/// this one. If CH vanishes (near x = ω̃), SX − X is the whole sum.
QUASI_HD inline PoleQuotient pole_quotient_screened_exchange(double x_ry, double pole_ry,
                                                             double half_width_ry, double max_ratio,
                                                             double cut) {
  const double y = x_ry + pole_ry;
  const double product = y * (x_ry - pole_ry);
  const double magnitude = product < 0 ? -product : product;
  const bool dropped = (x_ry < 0) & (pole_ry * pole_ry > cut * magnitude);
  const bool whole = near_pole(x_ry, pole_ry, half_width_ry, max_ratio);
  const double numerator = whole ? 1.0 : -2.0 * pole_ry;
  const double denominator = whole ? y : product;
  return {dropped ? 0.0 : numerator, dropped ? 1.0 : denominator};
}

/// Returns the factor of a band with occupation f: f · occupied + (1 − f) · empty.
QUASI_HD inline PoleQuotient pole_quotient(double x_ry, double pole_ry, double occupation,
                                           double half_width_ry, double max_ratio, double cut) {
  if (occupation == 1.0) return pole_quotient_occupied(x_ry, pole_ry, cut);
  if (occupation == 0.0) return pole_quotient_empty(x_ry, pole_ry, half_width_ry, max_ratio);
  return {
      occupation * pole_quotient_occupied(x_ry, pole_ry, cut).value() +
          (1.0 - occupation) * pole_quotient_empty(x_ry, pole_ry, half_width_ry, max_ratio).value(),
      1.0};
}

/// SX − X and CH of an element with an imaginary pole, ω̃ = i·pole, without ½ I v̄, by the rules in
/// split form, and their slopes with respect to x. With x² − ω̃² = x² + pole² they diverge only
/// near x = 0.
struct ImaginaryPoleTerms {
  Complex<double> ch, sx, ch_slope, sx_slope;
};
/// Returns the terms of one element with an imaginary pole (docs/theory/gw.md 6.2).
QUASI_HD inline ImaginaryPoleTerms imaginary_pole_terms(double x_ry, double pole_ry,
                                                        double half_width_ry, double cut) {
  const double square = x_ry * x_ry + pole_ry * pole_ry, per_square = 1.0 / square;
  ImaginaryPoleTerms terms;
  if (square > half_width_ry * half_width_ry) {
    terms.ch = {-pole_ry * pole_ry * per_square, pole_ry * x_ry * per_square};  // ω̃/(x − ω̃)
    terms.ch_slope = -per_square * (terms.ch * Complex<double>{x_ry, pole_ry});
    terms.sx = {2.0 * pole_ry * pole_ry * per_square, 0.0};  // −2ω̃²/(x² − ω̃²)
    terms.sx_slope = {-2.0 * terms.sx.re * x_ry * per_square, 0.0};
  } else {
    terms.sx = {pole_ry * pole_ry * per_square,
                pole_ry * x_ry * per_square};  // ω̃/(x + ω̃), the sum of both
    terms.sx_slope = -per_square * (terms.sx * Complex<double>{x_ry, -pole_ry});
  }
  if (x_ry < 0.0 && norm(terms.sx) > 4.0 * cut * cut) terms.sx = terms.sx_slope = {};
  return terms;
}

/// Returns the weight in L_GG' = folded_weight(G, G') P_GG'. A Hermitian P is L + L†, so that M P
/// M† = M L M† + (M L M†)†. The product M L has half the flops of M P.
QUASI_HD inline double folded_weight(std::int64_t g, std::int64_t h) {
  return g < h ? 1.0 : g == h ? 0.5 : 0.0;
}

// These functions return the factors as numbers.

QUASI_HD inline double pole_factor_empty(double x_ry, double pole_ry, double half_width_ry,
                                         double max_ratio) {
  return pole_quotient_empty(x_ry, pole_ry, half_width_ry, max_ratio).value();
}
QUASI_HD inline double pole_factor_occupied(double x_ry, double pole_ry, double cut) {
  return pole_quotient_occupied(x_ry, pole_ry, cut).value();
}
QUASI_HD inline double pole_factor_screened_exchange(double x_ry, double pole_ry,
                                                     double half_width_ry, double max_ratio,
                                                     double cut) {
  return pole_quotient_screened_exchange(x_ry, pole_ry, half_width_ry, max_ratio, cut).value();
}
QUASI_HD inline double pole_factor(double x_ry, double pole_ry, double occupation,
                                   double half_width_ry, double max_ratio, double cut) {
  return pole_quotient(x_ry, pole_ry, occupation, half_width_ry, max_ratio, cut).value();
}

}  // namespace quasi::gw
