#pragma once

#include <cmath>

#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

enum class RoughnessSpectrum { kExponential, kGaussian };

/// Steps of one silicon/oxide interface (docs/theory/mosfet.md 15.2): rms height and correlation
/// length.
struct Roughness {
  double height_nm = 0, length_nm = 0;  ///< height 0: smooth
  RoughnessSpectrum spectrum = RoughnessSpectrum::kExponential;
};

/// Returns the power spectrum S(q) of the steps, nm⁴ [goodnick1985]: πΔ²Λ²(1+q²Λ²/2)^{−3/2}
/// (exponential correlation) or πΔ²Λ² e^{−q²Λ²/4} (Gaussian).
inline double roughness_power(const Roughness& r, double q2_per_nm2) {
  const double x = q2_per_nm2 * r.length_nm * r.length_nm;
  const double peak = units::kPi * r.height_nm * r.height_nm * r.length_nm * r.length_nm;
  return peak * (r.spectrum == RoughnessSpectrum::kGaussian ? std::exp(-0.25 * x)
                                                            : std::pow(1.0 + 0.5 * x, -1.5));
}

/// Returns the matrix element of the force of an interface step, F = (ħ²/2m_z) ψ'_p ψ'_p' at the
/// interface, eV/nm [ando1982]. It is the shift of the level per shift of a wall in the
/// infinite-wall form; for p = p' in a well it is −∂ε/∂t. @param a, b  ψ_p, ψ_p' at the interface
/// node; `inward` = ±1 steps into the silicon
QUASI_HD inline double roughness_force(const double* a, const double* b, int inward, double dz_nm,
                                       double mz_m0) {
  const double slope_a = (-3.0 * a[0] + 4.0 * a[inward] - a[2 * inward]) / (2.0 * dz_nm);
  const double slope_b = (-3.0 * b[0] + 4.0 * b[inward] - b[2 * inward]) / (2.0 * dz_nm);
  return kHbar2Over2m0_ev_nm2 / mz_m0 * slope_a * slope_b;
}

/// Returns F_top² + F_bottom² of two levels of one column, because the two interfaces are
/// uncorrelated. @param first, last  nodes of the interfaces
QUASI_HD inline double roughness_strength(const double* psi_a, const double* psi_b, int first,
                                          int last, double dz_nm, double mz_m0) {
  const double top = roughness_force(psi_a + first, psi_b + first, 1, dz_nm, mz_m0);
  const double bottom = roughness_force(psi_a + last, psi_b + last, -1, dz_nm, mz_m0);
  return top * top + bottom * bottom;
}

}  // namespace quasi::mosfet
