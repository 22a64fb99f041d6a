#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

/// Begin here: in-plane band of one valley, w(1+αw) = ħ²k_x²/2m_x + ħ²k_y²/2m_y
/// (docs/theory/mosfet.md 3) [kane1957].
struct KaneBand {
  double mx_m0 = 0;
  double my_m0 = 0;
  double alpha_per_ev = 0;
};

/// Returns the Jacobian s(w) = √(m_x m_y)(1+2αw) of dk_x dk_y = s/ħ² dw dφ, in eV fs² nm⁻²
/// (docs/theory/mosfet.md 3.2).
QUASI_HD inline double band_jacobian(const KaneBand& band, double w_ev) {
  return sqrt(band.mx_m0 * band.my_m0) * kElectronMass_ev_fs2_nm2 *
         (1.0 + 2.0 * band.alpha_per_ev * w_ev);
}

/// Returns the group speed along x at φ = 0: √(2w(1+αw)) / (√m_x (1+2αw)), nm/fs. Equation (4) of
/// [mantas2020] has (1+2αw) under the root; with it a²s and a³s would not be free of divergence
/// (docs/theory/mosfet.md 4).
QUASI_HD inline double band_speed(const KaneBand& band, double w_ev) {
  return sqrt(2.0 * w_ev * (1.0 + band.alpha_per_ev * w_ev)) /
         (sqrt(band.mx_m0 * kElectronMass_ev_fs2_nm2) * (1.0 + 2.0 * band.alpha_per_ev * w_ev));
}

/// Returns 1/√(2 m_x w(1+αw)), nm/(eV fs). a³ is ε' sin φ times this number.
QUASI_HD inline double band_turning(const KaneBand& band, double w_ev) {
  return 1.0 / (sqrt(band.mx_m0 * kElectronMass_ev_fs2_nm2) *
                sqrt(2.0 * w_ev * (1.0 + band.alpha_per_ev * w_ev)));
}

}  // namespace quasi::mosfet
