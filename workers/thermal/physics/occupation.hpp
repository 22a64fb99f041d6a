#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// Returns the Bose–Einstein occupation n = 1/(exp(ħω/k_BT) − 1) of one mode; dimensionless
/// (docs/theory/thermal.md 5).
///
/// It uses expm1, because near Γ the argument falls below 1e-3. There exp(x) − 1 loses digits that
/// the acoustic branches' share of κ needs.
///
/// @param omega_rad_ps     angular frequency, > 0; callers leave out the zero modes at Γ.
/// @param temperature_k    lattice temperature, > 0.
/// @param hbar_over_kb_k_ps  ħ/k_B in K·ps (PhysicalConstants).
QUASI_HD inline double bose_einstein(double omega_rad_ps, double temperature_k,
                                     double hbar_over_kb_k_ps) {
  return 1.0 / std::expm1(hbar_over_kb_k_ps * omega_rad_ps / temperature_k);
}

/// Returns (x / sinh x)² with x = ħω/2k_BT, a mode's heat capacity in units of k_B
/// (docs/theory/thermal.md 8).
inline double heat_capacity_kb(double omega_rad_ps, double temperature_k,
                               double hbar_over_kb_k_ps) {
  const double x = 0.5 * hbar_over_kb_k_ps * omega_rad_ps / temperature_k;
  const double ratio = x / std::sinh(x);
  return ratio * ratio;
}

}  // namespace quasi::thermal
