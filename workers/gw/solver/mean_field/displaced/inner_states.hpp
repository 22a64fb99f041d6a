#pragma once

#include <string>
#include <vector>

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Holds an atom that a crystal displaces from its place at rest.
struct DisplacedAtom {
  int atom = 0;  ///< number in the list of WFN, from 1
  Vec3 by_bohr{};
};

/// Holds the states of a crystal with displaced atoms. They replace the inner states of Σ, over
/// which its sum over bands runs. W, V_xc and the outer states stay those at rest
/// (docs/theory/gw.md 14.5).
struct InnerStates {
  Wavefunctions waves;
  BrillouinZone zone;  ///< of the operations that the displaced crystal has left
  std::vector<DisplacedAtom> displaced;
};

/// Checks the states of WFN_inner, and gives them their zone.
/// @param rest  mean field at rest
/// @throws InvalidInput with field, value, limit and remedy if the crystal is not that of `rest`
/// but for displacements of 0.0001 … 0.2 Bohr, or if k-points, cut-off, spins or the number of
/// occupied bands differ
InnerStates make_inner_states(const MeanField& rest, Wavefunctions waves);

/// Returns a sentence that names the displaced atoms and forbids to read energies in the job.
std::string note_of_inner_states(const InnerStates& inner);

}  // namespace quasi::gw
