#pragma once

#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/solver/harmonic/elastic_delta.hpp"

namespace quasi::thermal {

/// Returns the rates of isotope scattering (docs/theory/thermal.md 9) [tamura1983] at the
/// irreducible points, [n_irr][nb] in 1/ps:
///   w = (π ω²/2Nq) Σ_λ' δ(ω − ω') Σ_κ g_κ |e_λ(κ)†·e_λ'(κ)|².
/// They are zero for modes that take no part in scattering.
std::vector<double> isotope_rates_per_ps(const Crystal& crystal, const Symmetry& symmetry,
                                         const Modes& modes, const ElasticDelta& delta,
                                         double omega_max_rad_ps);

}  // namespace quasi::thermal
