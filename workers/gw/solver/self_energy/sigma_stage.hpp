#pragma once

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/self_energy/exchange_correlation.hpp"

namespace quasi::gw {

/// What follows the diagonal Σ: the outer loop, then the full matrix and its Dyson equation, where
/// the deck asks for them.
void solve_further(const Deck& deck, const ExchangeCorrelation& vxc,
                   const CoulombInteraction& coulomb, DeviceTeam& team, Checkpoint& checkpoint,
                   Progress& progress, Calculation& run);

/// The mean field's states between the points of its grid, as the deck's files or built-in crystal
/// give them.
struct PathStates {
  StatesAt states;  ///< none: bands are taken by their rank
  std::string why;  ///< of the choice, in words
};
/// To be asked before the long phases: @throws InvalidInput where sigma.band_order = "character"
/// and H is not known well enough, or where VSC and VKB are not those of WFN.
PathStates path_states(const Deck& deck, const MeanField& field, GwKernels& kernels);

/// Mean-field and, with V_xc, quasiparticle energies along a path.
void bands_along_path(const BandPath& path, const PathStates& states, Progress& progress,
                      Calculation& run);

}  // namespace quasi::gw
