#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// One law that holds for every sound calculation (docs/theory/gw.md 13), tried on the data of the
/// job.
struct SelfCheck {
  std::string name;              ///< key in the results
  std::optional<double> value;   ///< absent where the law does not apply
  double low = 0.0, high = 0.0;  ///< sound values
  std::string units;
  std::string suspect;  ///< what is likely wrong where it fails
  bool passed() const { return !value || (*value >= low && *value <= high); }
};

/// Checks ε⁻¹(q; 0) by its largest violation over q:
///   hermiticity       |ε̃⁻¹ − ε̃⁻¹†|, elementwise, ε̃⁻¹ = v^−½ ε⁻¹ v^½
///   smallest_epsilon  least eigenvalue of ε̃, ≥ 1: screening only ever reduces an interaction
///   largest_epsilon   finite and positive
/// Eigenvalues by Lanczos steps. They do not apply where a truncated v is negative somewhere.
std::vector<SelfCheck> check_screening(const std::vector<DielectricMatrix>& epsilon);

/// Checks the states at one k and its largest multiplet among the outer states, by the devices of
/// this rank side by side:
///   orthonormality  largest |⟨l|n⟩ − δ_ln|
///   f_sum           Σ_n (E_n − E_l)|⟨l|e^{iGr}|n⟩|²/|G|² of the lowest band for the shortest G,
///   mean over ±G: → 1 from below with all
///                   bands and a local potential; non-locality moves it by tenths, wrong energies
///                   or states by more
///   density         largest |ρ(G) of the occupied states − RHO| per electron: small on the grid of
///   RHO, some 1e-3 on others multiplets      spread of X and SX over the members, full zone,
///   unaveraged, eV ch_truncation   static CH by the bands used less its closed form, eV: what
///   further bands would add; never negative
std::vector<SelfCheck> check_states(const MeanField& field,
                                    const std::vector<DielectricMatrix>& epsilon,
                                    const SigmaOptions& options, const CoulombInteraction& coulomb,
                                    DeviceTeam& team, Progress& progress,
                                    StepTimes* times = nullptr);

}  // namespace quasi::gw
