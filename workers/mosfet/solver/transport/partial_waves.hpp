#pragma once

#include <vector>

namespace quasi::mosfet {

/// An attractive screened Coulomb potential −(e²/4πε r) e^{−r/λ} for one mass.
struct ScreenedCoulomb {
  double strength_per_nm = 0;  ///< 2/a_B = (2m/ħ²)(e²/4πε)
  double length_nm = 0;        ///< screening length λ
};

/// Makes the potential of a donor. @param length_nm  screening length λ
ScreenedCoulomb donor_potential(double mass_m0, double eps_r, double length_nm);

/// Returns the phase shifts δ_l of a potential at wave number k, l = 0 … highest, between −π/2 and
/// π/2. Numerov's method integrates the radial equation [numerov1927], and the free waves at 16 λ
/// give δ_l.
std::vector<double> phase_shifts(const ScreenedCoulomb& potential, double k_per_nm, int highest);

/// Returns the phase shifts in Born's approximation, (k_s/2k) Q_l(1 + 1/2k²λ²) with the strength
/// k_s and Legendre's function of the second kind Q_l.
std::vector<double> born_phase_shifts(const ScreenedCoulomb& potential, double k_per_nm,
                                      int highest);

/// Returns the cross-section of momentum transport over that of Born's approximation
/// [meyer1981] (docs/theory/mosfet.md 15.3):
///
///   σ = (4π/k²) Σ_l (l+1) sin²(δ_l − δ_{l+1}),
///
/// with Born's differences beyond the angular momenta that the potential distorts.
double partial_wave_ratio(const ScreenedCoulomb& potential, double k_per_nm);

/// partial_wave_ratio() of one potential and mass, tabulated over the kinetic energy.
class PartialWaveTable {
 public:
  PartialWaveTable(const ScreenedCoulomb& potential, double mass_m0);
  /// Returns the ratio at w, linear in ln w; constant outside 1 meV … 2 eV.
  double at(double w_ev) const;

 private:
  std::vector<double> ratio_;
};

}  // namespace quasi::mosfet
