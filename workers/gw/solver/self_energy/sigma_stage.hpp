#pragma once

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/self_energy/exchange_correlation.hpp"

namespace quasi::gw {

/// Calculates what a deck asks for after the diagonal Σ: the outer loop, then the full matrix and
/// its Dyson equation.
/// @throws InvalidInput without a needed V_xc; NotConverged
void solve_further(const SigmaRequest& wanted, const ExchangeCorrelation& vxc,
                   const StepContext& context, Calculation& run);

/// The mean field's states between the points of its grid.
struct PathStates {
  StatesAt states;  ///< empty: bands are ordered by their rank
  std::string why;  ///< reason of the choice, a phrase for the log and the result
};
/// Finds how the bands of a path can be followed. Called before the long phases.
/// @throws InvalidInput where sigma.band_order = "character" and H is not known well enough, or
/// where VSC and VKB do not belong to WFN
PathStates path_states(const MeanFieldOptions& source, const SigmaRequest& wanted,
                       const MeanField& field, GwKernels& kernels);

/// Adds mean-field and, with V_xc, quasiparticle energies along a path (docs/theory/gw.md 10).
void bands_along_path(const BandPath& path, const PathStates& states, Progress& progress,
                      Calculation& run);

/// Notes what the spectra lack.
void note_spectra(const SigmaRequest& wanted, Calculation& run);
/// Notes k-points whose quasiparticle energies contradict the occupations of the mean field.
void note_gaps(Calculation& run);

}  // namespace quasi::gw
