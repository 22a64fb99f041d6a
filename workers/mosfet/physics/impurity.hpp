#pragma once

#include <cmath>

#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

/// Returns the rate at which ionised impurities relax momentum (docs/theory/mosfet.md 15.3)
/// [brooks1955], 1/fs:
///
///   N_I (e²/ε)² / (16√2 π √m w^{3/2}) [ln(1+γ²) − γ²/(1+γ²)],   γ² = 8 m w/(ħ²β²).
///
/// At densities where impurities matter, the screening length 1/β is short compared with the film.
/// The form of the bulk with the in-plane energy is therefore used.
///
/// @param mass_m0     √(m_x m_y), or the mean mass of the bulk
/// @param screening2  β² = (e/ε)(∂n/∂E_F), 1/nm²
inline double brooks_herring_rate(double w_ev, double impurities_per_nm3, double eps_r,
                                  double mass_m0, double screening2_per_nm2) {
  const double coulomb_ev_nm = kChargeOverEpsilon0_v_nm / eps_r;
  const double mass = mass_m0 * kElectronMass_ev_fs2_nm2;
  const double gamma2 = 8.0 * mass * w_ev / (kHbar_ev_fs * kHbar_ev_fs * screening2_per_nm2);
  // log1p(γ²) − γ²/(1+γ²) loses its digits for small γ; its series begins with γ⁴/2 − 2γ⁶/3.
  const double angle = gamma2 < 1e-4 ? gamma2 * gamma2 * (0.5 - 2.0 / 3.0 * gamma2)
                                     : std::log1p(gamma2) - gamma2 / (1.0 + gamma2);
  return impurities_per_nm3 * coulomb_ev_nm * coulomb_ev_nm * angle /
         (16.0 * std::sqrt(2.0 * mass) * units::kPi * w_ev * std::sqrt(w_ev));
}

/// Returns the least screening length that donors at this density have, nm
/// (docs/theory/mosfet.md 15.3) [meyer1987]. The clouds of neighbouring donors overlap, so that
/// linear screening by all electrons at each donor counts them more than once.
inline double multi_ion_length_nm(double impurities_per_nm3) {
  return 0.37 / std::cbrt(impurities_per_nm3);
}

/// Returns the factor by which scattering among electrons raises the relaxation by impurities in
/// silicon (docs/theory/mosfet.md 15.3) [appel1961]. It is fitted to the mobility of [masetti1983].
inline double electron_exchange_factor(double impurities_per_nm3) {
  constexpr double kDegenerate_nm3 = 8e-3;
  return 1.0 + 1.7 / (1.0 + std::pow(impurities_per_nm3 / kDegenerate_nm3, 1.1));
}

}  // namespace quasi::mosfet
