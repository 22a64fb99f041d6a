#pragma once

#include <memory>
#include <vector>

#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"
#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// Holds the potential of a built-in crystal.
struct PotentialOfCrystal {
  PotentialElements local;  ///< V(G), Ry
  /// Spin–orbit term; null if H does not act on spins.
  std::shared_ptr<const SpinOrbitTerm> spin_orbit = {};
};

/// Holds the potentials of a crystal with one atom moved by +h and by −h.
struct DisplacedPotentials {
  PotentialOfCrystal forth, back;
};

/// Holds the request for first orders of Σ by central differences.
struct DifferenceRequest {
  const std::vector<DisplacedPotentials>& potentials;
  const std::vector<double>& energies_ry;  ///< E of Σ_lm(E), [E]
  double step_bohr = 0.0;                  ///< h
  /// Pseudobands among the inner states, whose random vectors do not move. With null all inner
  /// states are eigenstates.
  const FilteredPseudobands* pseudobands = nullptr;
};

/// Calculates [Σ_lm(E; h) − Σ_lm(E; −h)]/2h at the first k of the options, Ry/Bohr
/// (docs/theory/gw.md 14.5). W, E and the outer states are those of the crystal at rest. The inner
/// states are the lowest eigenstates of |k+G|² + V(G − G') with each displaced potential, from
/// dense matrices. Spinors add the spin–orbit term. No first order of a potential or a state
/// enters, so that the result is an independent check. With pseudobands the displaced H makes new
/// windows from the same random vectors, and the closed sum is subtracted as in Σ.
/// @return [potential][E][l][m]; static COHSEX has one energy
std::vector<std::vector<Cplx>> finite_differences(const MeanField& field,
                                                  const std::vector<DielectricMatrix>& epsilon,
                                                  const SigmaOptions& options,
                                                  const DifferenceRequest& wanted,
                                                  const DeviceContext& context);

}  // namespace quasi::gw
