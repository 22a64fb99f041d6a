#pragma once

#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {

/// Returns the broadening of elastic scattering and of the density of states for every mode
/// (docs/theory/thermal.md 9): the base width of its own velocity (sb = 1), at least exp(p25 − 1.5
/// (p75 − p25)) of ln σ. [n_modes] in rad/ps.
std::vector<double> elastic_widths_rad_ps(const Modes& modes, const HarmonicOptions& options);

/// Returns the rates of isotope scattering (docs/theory/thermal.md 9) [tamura1983] at the
/// irreducible points, [n_irr][nb] in 1/ps:
///   w = (π ω²/2Nq) Σ_λ' δ_σ'(ω − ω') Σ_κ g_κ |e_λ(κ)†·e_λ'(κ)|², |ω − ω'| < 2.5 σ'.
/// They are zero for modes that take no part in scattering.
/// @param width_rad_ps  elastic_widths_rad_ps
std::vector<double> isotope_rates_per_ps(const Crystal& crystal, const Symmetry& symmetry,
                                         const Modes& modes,
                                         const std::vector<double>& width_rad_ps,
                                         double omega_max_rad_ps);

}  // namespace quasi::thermal
