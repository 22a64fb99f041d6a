#pragma once

#include "workers/gw/exchange_correlation.hpp"
#include "workers/gw/gw_calculation.hpp"

namespace quasi::gw {

/// True if V_xc is needed between different states.
bool wants_matrix(const Deck& deck);

/// What follows the diagonal Σ: the outer loop, then the full matrix and its Dyson equation, where the deck asks for them.
void solve_further(const Deck& deck, const ExchangeCorrelation& vxc, const CoulombInteraction& coulomb, DeviceTeam& team,
                   Checkpoint& checkpoint, Progress& progress, Calculation& run);

/// Mean-field and, with V_xc, quasiparticle energies along a path.
void bands_along_path(const BandPath& path, Calculation& run);

}  // namespace quasi::gw
