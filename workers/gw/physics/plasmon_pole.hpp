#pragma once

#include <cmath>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"

namespace quasi::gw {

/// Plasmon-pole factors of one element (G, G') for x = E − E_n, without the strength A = ½ I ω̃ v̄:
/// multiply by A. Energies in Ry; results in 1/Ry. Both rules below are those of spec 6.2 in
/// collapsed form: the generalised plasmon pole of Hybertsen and Louie has
///
///   SX − X = −I ω̃²/(x² − ω̃²),   CH = ½ I ω̃/(x − ω̃),
///
/// whose sum is ½ I ω̃/(x + ω̃): one reciprocal, and no cancellation at x ≈ ω̃, where the
/// separate terms diverge with opposite signs.

/// Empty band: 1/(x − ω̃); 0 within max(γ, ω̃/max_ratio) of the pole.
QUASI_HD inline double pole_factor_empty(double x_ry, double pole_ry, double half_width_ry,
                                         double max_ratio) {
  const double y = x_ry - pole_ry;
  const double distance = y < 0 ? -y : y;
  const double from_ratio = pole_ry / max_ratio;
  return distance <= (half_width_ry > from_ratio ? half_width_ry : from_ratio) ? 0.0 : 1.0 / y;
}

/// Occupied band: 1/(x + ω̃). Where x < 0 and |ω̃²/(x² − ω̃²)| exceeds `cut`, SX − X is dropped and
/// CH alone, 1/(x − ω̃), stays.
QUASI_HD inline double pole_factor_occupied(double x_ry, double pole_ry, double cut) {
  const double y = x_ry + pole_ry;
  const double z = x_ry - pole_ry;
  const double product = y * z;
  const bool dropped = x_ry < 0 && pole_ry * pole_ry > cut * (product < 0 ? -product : product);
  return 1.0 / (dropped ? z : y);
}

/// SX − X of an occupied band alone, so that CH = pole_factor_occupied − this.
/// Where CH vanishes (x within the width of ω̃) SX − X is the whole sum.
QUASI_HD inline double pole_factor_screened_exchange(double x_ry, double pole_ry,
                                                     double half_width_ry, double max_ratio,
                                                     double cut) {
  const double y = x_ry + pole_ry;
  const double z = x_ry - pole_ry;
  const double product = y * z;
  const double magnitude = product < 0 ? -product : product;
  if (x_ry < 0 && pole_ry * pole_ry > cut * magnitude) return 0.0;
  const double distance = z < 0 ? -z : z;
  const double from_ratio = pole_ry / max_ratio;
  if (distance <= (half_width_ry > from_ratio ? half_width_ry : from_ratio)) return 1.0 / y;
  return -2.0 * pole_ry / product;
}

/// A band of occupation f between: f · occupied + (1 − f) · empty.
QUASI_HD inline double pole_factor(double x_ry, double pole_ry, double occupation,
                                   double half_width_ry, double max_ratio, double cut) {
  double factor = 0.0;
  if (occupation > 0.0) factor += occupation * pole_factor_occupied(x_ry, pole_ry, cut);
  if (occupation < 1.0)
    factor += (1.0 - occupation) * pole_factor_empty(x_ry, pole_ry, half_width_ry, max_ratio);
  return factor;
}

}  // namespace quasi::gw
