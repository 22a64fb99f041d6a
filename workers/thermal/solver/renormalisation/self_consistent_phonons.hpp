#pragma once

#include <array>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// Options of the self-consistent phonons of one temperature (docs/theory/thermal.md 14).
struct SelfConsistentOptions {
  double temperature_k = 300.0;  ///< ≥ 0; the zero-point motion is included
  QMesh mesh;                    ///< Γ-centred mesh that samples the displacements
  double mixing = 0.5;           ///< largest share of the new constants in a step, 0 < mixing ≤ 1
  double tolerance = 1e-10;  ///< largest change of an element, over the largest element of Φ₂
  int max_iterations = 400;
};

/// Change of the second-order constants of one pair by thermal motion.
struct PairCorrection {
  int atom = 0;   ///< κ, in the origin cell
  int other = 0;  ///< κ', in `cell`
  Index3 cell{0, 0, 0};
  std::array<double, 9> value_ev_a2{};  ///< [α][β]
};

/// Result of the self-consistent phonons of one temperature.
struct SelfConsistentConstants {
  std::vector<PairCorrection> correction;  ///< Φ₂^eff − Φ₂, sorted by atoms and cell
  int iterations = 0;
  double residual = 0.0;  ///< largest change in the last step, over the largest element of Φ₂
};

/// Begin here: solves the equations of self-consistent phonons of first order,
///   Φ₂^eff = Φ₂ + ½ Σ Φ₄ ⟨uu⟩, where ⟨uu⟩ is that of the modes of Φ₂^eff
/// (docs/theory/thermal.md 14). The bare modes may be imaginary.
/// @param fourth  constants of fourth order, eV/Å⁴
/// @throws InvalidInput for constants of another order or options out of range, and if modes of
/// the solution are imaginary. @throws NotConverged after options.max_iterations.
SelfConsistentConstants solve_self_consistent(const Crystal& crystal, const SecondOrder& bare,
                                              const SparseForceConstants& fourth,
                                              const HarmonicOptions& harmonic,
                                              const SelfConsistentOptions& options);

/// Returns bare constants with their correction, whose modes are the renormalised phonons.
SecondOrder with_correction(SecondOrder bare, const std::vector<PairCorrection>& correction,
                            const PhysicalConstants& constants);

}  // namespace quasi::thermal
