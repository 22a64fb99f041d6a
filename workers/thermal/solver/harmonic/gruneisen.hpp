#pragma once

#include <vector>

#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"

namespace quasi::thermal {

/// Mode Grüneisen parameters γ = −∂ln ω/∂ln V of every row, [n_rows], from the third order:
///
///   γ = −1/(6ω²) Σ Φ_αβγ(κ0, κ'R', κ''R'') e*_κα e_κ'β e^{iq·R'} r_γ(κ''R'')/√(m_κ m_κ')
///
/// The cell grows alike along its axes with the atoms at fixed fractional positions, and charges
/// are constant. Degenerate sets get their mean, and modes that take no part get 0.
std::vector<double> gruneisen_parameters(const Transport& transport,
                                         const SparseForceConstants& third_order);

/// Mean weighted by heat capacity over the whole mesh, Γ's zero modes left out.
double mean_gruneisen(const Transport& transport, const std::vector<double>& gruneisen,
                      double temperature_k);

}  // namespace quasi::thermal
