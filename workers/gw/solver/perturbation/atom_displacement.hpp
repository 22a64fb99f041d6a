#pragma once

#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Displacement of one atom of every cell of a built-in crystal, p = 0 (docs/theory/gw.md 14.1):
///
///   ∂V(G) = −i (G·e) v_a(|G|²) e^{−iG·τ_a} / N_at.
///
/// @param crystal    the crystal of empirical_mean_field()
/// @param atom       position in its list of atoms, from 0
/// @param direction  e, a Cartesian unit vector
/// @throws InvalidInput if the crystal lacks the atom, or is deformed: form factors then do not
/// follow from |G|
Perturbation atom_displacement(const EmpiricalCrystal& wanted, const Crystal& crystal, int atom,
                               const Vec3& direction);

/// Calculates V(G) of the crystal with one atom of every cell at τ_a + u, Ry. It has the elements
/// of empirical_potential() at u = 0.
/// @param atom               position in its list of atoms, from 0
/// @param displacement_bohr  u, Cartesian
/// @throws InvalidInput as atom_displacement() does
PotentialElements displaced_potential(const EmpiricalCrystal& wanted, const Crystal& crystal,
                                      int atom, const Vec3& displacement_bohr);

}  // namespace quasi::gw
