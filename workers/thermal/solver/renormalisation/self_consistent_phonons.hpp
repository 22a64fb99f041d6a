#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/renormalisation/self_consistency_kernels.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// Options of the self-consistent phonons (docs/theory/thermal.md 14).
struct SelfConsistentOptions {
  QMesh mesh;                ///< Γ-centred mesh that samples the displacements
  double mixing = 0.5;       ///< largest share of the new constants in a step, 0 < mixing ≤ 1
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
  std::int64_t memory_bytes = 0;  ///< of the arrays on the device
};

/// Begin here: solves the equations of self-consistent phonons of first order,
///   Φ₂^eff = Φ₂ + ½ Σ Φ₄ ⟨uu⟩, where ⟨uu⟩ is that of the modes of Φ₂^eff
/// (docs/theory/thermal.md 14), at one temperature after another. The bare modes may be imaginary.
/// The dynamical matrices, their modes, the correlations and the sum over Φ₄ are computed on the
/// device, which holds memory only while a temperature is solved.
class SelfConsistentPhonons {
 public:
  /// @param crystal, fourth  must outlive the object; `fourth` in eV/Å⁴
  /// @throws InvalidInput for constants of another order or options out of range.
  SelfConsistentPhonons(const Crystal& crystal, const SecondOrder& bare,
                        const SparseForceConstants& fourth, const HarmonicOptions& harmonic,
                        const SelfConsistentOptions& options, const Device& device);

  /// @param temperature_k  ≥ 0; the zero-point motion is included
  /// @throws InvalidInput for a negative temperature, and if modes of the solution are imaginary.
  /// @throws NotConverged after options.max_iterations. @throws OutOfMemory of the device.
  SelfConsistentConstants solve(double temperature_k) const;

 private:
  const Crystal& crystal_;
  PhysicalConstants constants_;
  SelfConsistentOptions options_;
  Device device_;
  double largest_ev_a2_;               ///< largest element of Φ₂
  std::vector<PairCorrection> pairs_;  ///< with corrections of zero
  SelfConsistencyProblem problem_;
};

/// Returns bare constants with their correction, whose modes are the renormalised phonons.
SecondOrder with_correction(SecondOrder bare, const std::vector<PairCorrection>& correction,
                            const PhysicalConstants& constants);

}  // namespace quasi::thermal
