#pragma once

#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Returns the displacement of one atom of every cell of a built-in crystal with the wave vector p
/// = 0 (docs/theory/gw.md 14.1):
///
///   ∂V(G) = −i (G·e) v_a(|G|²) e^{−iG·τ_a} / N_at, Ry/Bohr
///
/// v_a is the form factor of the atom, τ_a its position and N_at the number of atoms.
/// @param wanted  request of the built-in crystal
/// @param crystal  the crystal of empirical_mean_field()
/// @param atom  position in its list of atoms, from 0
/// @param direction  e, a Cartesian unit vector
/// @throws InvalidInput if the crystal lacks the atom or is deformed; form factors then do not
/// follow from |G|
Perturbation atom_displacement(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom,
                               const Vec3& direction);

/// Calculates V(G) in Ry of the crystal with one atom of every cell at τ_a + u. At u = 0 it has
/// the elements of empirical_potential().
/// @param atom  position in its list of atoms, from 0
/// @param displacement_bohr  u, Cartesian
/// @throws InvalidInput as atom_displacement() does
PotentialElements displaced_potential(const EmpiricalCrystal& wanted, const Crystal& crystal,
                                      int atom, const Vec3& displacement_bohr);

}  // namespace quasi::gw
