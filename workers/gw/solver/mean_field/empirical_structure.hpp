#pragma once

#include "workers/gw/model/empirical_crystal.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"

namespace quasi::gw {

/// Makes cell, atoms and symmetry of a built-in crystal. @throws InvalidInput if its symmetry
/// cannot be found
Crystal empirical_crystal(const EmpiricalCrystal& wanted);

/// Returns V(G) of a built-in crystal where it is not 0.
PotentialElements empirical_potential(const EmpiricalCrystal& wanted);

/// Returns the spin–orbit strength λ_a of each atom of a built-in crystal, Ry Bohr²
/// (docs/theory/gw.md 15.1).
/// @pre wanted.spin_orbit_ry_bohr2 is set
std::vector<double> spin_orbit_strengths(const EmpiricalCrystal& wanted);

/// Returns the spin–orbit term of a built-in crystal. @pre wanted.spin_orbit_ry_bohr2 is set
SpinOrbitTerm spin_orbit_term(const EmpiricalCrystal& wanted, const Crystal& crystal);

/// Returns the number of occupied bands of a built-in crystal: two an atom, or one a well. Spinors
/// have twice as many.
int occupied_bands_of(const EmpiricalCrystal& wanted, const Crystal& crystal);

}  // namespace quasi::gw
