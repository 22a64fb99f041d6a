#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"
#include "workers/gw/solver/step_context.hpp"

namespace quasi::gw {

/// A law that holds for every sound calculation (docs/theory/gw.md 13), and its value by the data
/// of the job.
struct SelfCheck {
  std::string name;              ///< key in the results
  std::optional<double> value;   ///< absent where the law does not apply
  double low = 0.0, high = 0.0;  ///< sound values
  std::string units;
  std::string suspect;  ///< the likely cause of a failure
  bool passed() const { return !value || (*value >= low && *value <= high); }
};

/// Checks ε⁻¹(q; 0) and returns the largest violation over q of each law:
///
///   hermiticity       |ε̃⁻¹ − ε̃⁻¹†|, elementwise, ε̃⁻¹ = v^−½ ε⁻¹ v^½
///   smallest_epsilon  the least eigenvalue of ε̃ is at least 1, because screening only reduces an
///                     interaction
///   largest_epsilon   the largest eigenvalue of ε̃ is finite and positive
///
/// Eigenvalues come from Lanczos steps. The laws do not apply where a truncated v is negative at
/// some q+G.
std::vector<SelfCheck> check_screening(const std::vector<DielectricMatrix>& epsilon);

/// Checks the states at one k before ε⁻¹ is known:
///
///   orthonormality  largest |⟨l|n⟩ − δ_ln|
///   f_sum           Σ_n (E_n − E_l) |⟨l|e^{iGr}|n⟩|²/|G|² of the lowest band for the shortest G,
///                   averaged over ±G. It rises to 1 with all bands and a local potential.
///                   Non-locality moves it by tenths; wrong energies or states move it further.
///   density         largest |ρ(G) of the occupied states − RHO| per electron. It is small on the
///                   grid of RHO, and a few per cent on coarser grids.
/// @param times  gets the seconds of each check; null: no times are kept
std::vector<SelfCheck> check_mean_field(const MeanField& field, const SigmaOptions& options,
                                        GwKernels& kernels, StepTimes* times = nullptr);

/// Checks Σ of the largest multiplet at one k. The devices of this rank share the checks.
///
///   multiplets      spread of X and SX over the members of the multiplet, eV, without averaging
///                   and over the full zone
///   ch_truncation   static CH by the bands used less its closed form, eV. It is the contribution
///                   of all further bands and is never negative.
/// @param times  gets the seconds of each check; null: no times are kept
std::vector<SelfCheck> check_states(const MeanField& field,
                                    const std::vector<DielectricMatrix>& epsilon,
                                    const SigmaOptions& options, const StepContext& context,
                                    StepTimes* times = nullptr);

}  // namespace quasi::gw
