#pragma once

#include "workers/mosfet/physics/fermi_integral.hpp"
#include "workers/mosfet/physics/kane_band.hpp"

namespace quasi::mosfet {

/// Sheet density ϱ of one valley's subband in equilibrium and its slope −∂ϱ/∂ε
/// (docs/theory/mosfet.md 7, 9.2).
struct SheetDensity {
  double density_nm2;
  double slope_nm2_ev;
};

/// Returns ϱ of Boltzmann statistics: ϱ = (√(m_xm_y)/πħ²) kT(1+2αkT) e^{(E_F−ε)/kT}.
QUASI_HD inline SheetDensity sheet_maxwell(const KaneBand& band, double kt_ev, double gap_ev) {
  const double states = sqrt(band.mx_m0 * band.my_m0) * kElectronMass_ev_fs2_nm2 /
                        (units::kPi * kHbar_ev_fs * kHbar_ev_fs);
  const double density =
      states * kt_ev * (1.0 + 2.0 * band.alpha_per_ev * kt_ev) * exp(gap_ev / kt_ev);
  return {density, density / kt_ev};
}

/// Returns ϱ of Fermi statistics: ϱ = (√(m_xm_y)/πħ²)[kT F0(η) + 2α(kT)² F1(η)], η = (E_F−ε)/kT.
QUASI_HD inline SheetDensity sheet_fermi(const KaneBand& band, double kt_ev, double gap_ev) {
  const double states = sqrt(band.mx_m0 * band.my_m0) * kElectronMass_ev_fs2_nm2 /
                        (units::kPi * kHbar_ev_fs * kHbar_ev_fs);
  const double eta = gap_ev / kt_ev;
  const double f0 = fermi_integral_0(eta);
  return {states * kt_ev * (f0 + 2.0 * band.alpha_per_ev * kt_ev * fermi_integral_1(eta)),
          states * (fermi_function(eta) + 2.0 * band.alpha_per_ev * kt_ev * f0)};
}

}  // namespace quasi::mosfet
