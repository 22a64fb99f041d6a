#pragma once

#include <string>

#include "workers/gw/input/deck.hpp"
#include "workers/io/table_reader.hpp"

// The folder workers/gw/input/spinors reads what belongs to states of two components. Begin here:
// deck_spinors.hpp reads and checks the spin–orbit coupling of the built-in crystals.
namespace quasi::gw {

/// Reads meanfield.spin_orbit_ry_bohr2. @pre the name of the crystal is read
void read_spin_orbit(TableReader& reader, EmpiricalCrystal& crystal);

/// Refuses settings of other keys that spinors do not have. @throws InvalidInput
void check_spin_orbit(const Deck& deck, const std::string& where);

}  // namespace quasi::gw
