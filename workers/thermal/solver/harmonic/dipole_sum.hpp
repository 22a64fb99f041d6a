#pragma once

#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/model/harmonic_options.hpp"
#include "workers/thermal/physics/physical_constants.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal {

/// Damping exp(−KεK/4α) of a sum over reciprocal vectors K, and where the sum ends.
struct DipoleDamping {
  double alpha_per_bohr2 = 0.0;
  double cut = 0.0;  ///< largest KεK/4α
};

/// Returns the damping of Ewald decks, √α = 2π/|a1|, which is the convention of espresso.ifc2.
DipoleDamping ewald_damping(const Crystal& crystal, const HarmonicOptions& options);
/// Returns the damping of decks of supercells, √α = 2π/V^{1/3}, or that of phonopy.
DipoleDamping gonze_lee_damping(const Crystal& crystal, const HarmonicOptions& options);

/// Returns a damping so weak that the rest of the sum in real space is below e^−32 at the distance
/// of nearest neighbours: the reciprocal sum is then the whole interaction of dipoles.
DipoleDamping whole_damping(const Crystal& crystal);

/// Damped sum of the interaction of dipoles over reciprocal vectors [gonze1997], less the same sum
/// at Γ in the blocks of equal atoms (docs/theory/thermal.md 3.4). It keeps a reference to the
/// crystal.
class DipoleSum {
 public:
  DipoleSum(const Crystal& crystal, const PhysicalConstants& constants,
            const DipoleDamping& damping);
  /// Adds the sum at a fractional wave vector to a dynamical matrix. At Γ the term K = 0 is left
  /// out.
  void add(const Vec3& q_fractional, bool with_gradient, DynamicalMatrix& out) const;

 private:
  struct Terms;
  template <typename Visit>
  void for_each_vector(const Vec3& q, const Visit& visit) const;

  const Crystal& crystal_;
  PhysicalConstants constants_;
  DipoleDamping damping_;
  Mat3 reciprocal_per_bohr_;
  double unit_;                   ///< of the sum, in (rad/ps)² amu
  std::vector<double> diagonal_;  ///< [atom][3][3] the sum at Γ, rydberg units
};

/// Subtracts the dipole sum at the wave vectors of the supercell from constants that contain it.
/// The short-range rest is Φ − √(mm')/n Σ_q e^{iq·R} D(q), with the n wave vectors q that the
/// supercell allows (docs/theory/thermal.md 3.4).
SecondOrder without_dipoles(const Crystal& crystal, SecondOrder constants,
                            const DipoleSum& dipoles);

}  // namespace quasi::thermal
