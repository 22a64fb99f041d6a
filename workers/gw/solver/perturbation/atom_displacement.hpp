#pragma once

#include <memory>

#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the wave of a displacement, u e^{ip·R} in cell R, and the lengths of the form factors.
struct DisplacementWave {
  Vec3 p{};  ///< wave vector, reduced
  /// True means form factors of all |K| (form_factor_curve.hpp). False means those of the lattice
  /// alone, so that ∂V of a supercell has the period of the primitive cell. A p other than 0
  /// needs true.
  bool all_lengths = false;
};

/// Returns the displacement of one atom of every cell of a built-in crystal (docs/theory/gw.md
/// 14.1, 14.13). With K = p + G:
///
///   ∂V(K) = −i (K·e) v_a(|K|²) e^{−iK·τ_a} / N_at, Ry/Bohr
///
/// The spin–orbit term of the atom moves with it (SpinOrbitDisplacement).
/// v_a is the form factor of the atom, τ_a its position and N_at the number of atoms.
/// @param wanted  request of the built-in crystal
/// @param crystal  the crystal of empirical_mean_field()
/// @param atom  position in its list of atoms, from 0
/// @param direction  e, a Cartesian unit vector
/// @throws InvalidInput if the crystal lacks the atom or is deformed; form factors then do not
/// follow from |K|
Perturbation atom_displacement(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom,
                               const Vec3& direction, const DisplacementWave& wave = {});

/// Calculates V(G) in Ry of the crystal with one atom of every cell at τ_a + u. At u = 0 it has
/// the elements of empirical_potential(), and with all lengths zeros beside them.
/// @param atom  position in its list of atoms, from 0
/// @param displacement_bohr  u, Cartesian
/// @param all_lengths  as in DisplacementWave
/// @throws InvalidInput as atom_displacement() does
PotentialElements displaced_potential(const EmpiricalCrystal& wanted, const Crystal& crystal,
                                      int atom, const Vec3& displacement_bohr,
                                      bool all_lengths = false);

/// Makes the spin–orbit term of the crystal with one atom of every cell at τ_a + u. The result
/// is null if H does not act on spins. The arguments are those of displaced_potential().
/// @throws InvalidInput as atom_displacement() does
std::shared_ptr<const SpinOrbitTerm> displaced_spin_orbit(const EmpiricalCrystal& wanted,
                                                          const Crystal& crystal, int atom,
                                                          const Vec3& displacement_bohr);

}  // namespace quasi::gw
