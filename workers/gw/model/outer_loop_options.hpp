#pragma once

namespace quasi::gw {

/// Self-consistency around Σ (docs/theory/gw.md 8). ε⁻¹ stays that of the mean field except in
/// kEvGw and kQsGw.
enum class OuterLoop {
  kNone,
  kEvGw0,  ///< quasiparticle energies in G
  kEvGw,   ///< quasiparticle energies in G and in ε⁻¹
  kQsGw0,  ///< energies and states in G, from the Hermitian static matrix; V_H follows the density
  kQsGw,   ///< kQsGw0 with ε⁻¹ of the new states, energies and density
};

/// Returns true for the loops that replace the mean field's states.
inline bool replaces_states(OuterLoop kind) {
  return kind == OuterLoop::kQsGw0 || kind == OuterLoop::kQsGw;
}

struct OuterLoopOptions {
  OuterLoop kind = OuterLoop::kNone;
  int max_iterations = 40;
  double tolerance_ev = 1e-4;   ///< largest change of an energy from one iteration to the next
  double start_shift_ev = 0.0;  ///< added to all empty bands before the first iteration
};

}  // namespace quasi::gw
