#pragma once

#include <vector>

#include "workers/thermal/solver/conductivity.hpp"

namespace quasi::thermal {

/// By how much diffuse walls reduce a mode's share in a cylindrical wire: the mean over the cross
/// section of 1 − e^{−s/Λ}, s the way to the wall across the axis,
///
///   f = (2Λ/πR²) ∫_0^R [2√(R²−x²)/Λ − 1 + e^{−2√(R²−x²)/Λ}] dx,   Λ = v_ρ τ.
///
/// 1 for Λ → 0; 8R/(3πΛ) for Λ → ∞ (Casimir).
double diffuse_wire_reduction(double path_nm, double radius_nm);

/// κ along the axis of wires, in W/m/K.
struct WireConductivity {
  std::vector<Vec3> axis;               ///< [n_axes] unit vectors
  std::vector<double> radius_nm;        ///< [n_radii]
  std::vector<double> kappa_w_per_mk;   ///< [n_axes][n_radii]
};

/// Each mode's F along the axis is reduced by the f of its own relaxation time; all members of a star by
/// themselves, since a wire has less symmetry than its crystal. With the field of the relaxation-time
/// approximation this is the wire's; with a converged bulk field the in-scattering is still the bulk's.
/// @param rate_per_ps  [n_rows] total rates without boundaries
/// @param field        [n_rows][3]
WireConductivity wire_conductivity(const Transport& transport, double temperature_k, const std::vector<double>& rate_per_ps,
                                   const std::vector<double>& field);

}  // namespace quasi::thermal
