#pragma once

#include <string>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Returns the least memory of a device for ε of a built-in crystal. A GPU needs a third of it if
/// the states may be real: the crystal then has inversion about the origin, and every k is its own
/// inverse. @param on_cpu  the device is the host
double least_bytes_of_crystal(const EmpiricalCrystal& crystal, double cutoff_ry, bool on_cpu);

/// Ends a job of a built-in crystal before its states are calculated, if a device cannot hold the
/// matrices between plane waves or their slices, or the host ε⁻¹. The plan makes these checks
/// for every job, after the states.
/// @throws OutOfMemory as require_room() and require_host_room() do
void require_room_of_crystal(const Deck& deck, const Workplace& place);

/// Ends the job at the first law that the list violates and the deck does not accept.
/// A study takes its own mean field to coarser grids, whose density differs.
/// @throws InvalidInput with law, value, limits, likely cause and remedy
void require_sound(const Deck& deck, const std::vector<SelfCheck>& list);
/// Notes the laws that are violated. Those that the deck does not accept mark the results.
void note_violations(const Deck& deck, Progress& progress, Calculation& run);

/// Adds the eigensolver that made the states of a job to its plan: dense diagonalisations, or the
/// operator of a built-in crystal. Its memory is free when the plan is made.
void add_eigensolver_to_plan(const Deck& deck, const Device& device, Calculation& run);

/// Refuses what states of two components from files do not have. check_spin_orbit() refuses the
/// like for built-in crystals when the deck is read.
/// @throws InvalidInput with key and remedy
void require_support_of_spinors(const Deck& deck, const MeanField& field);

/// Takes out of the deck of a validation what needs states that it has forgotten
/// (StateStorage::forget). @return a note that says so; empty: no states are forgotten
std::string leave_out_forgotten_states(const MeanField& field, Deck& deck);

}  // namespace quasi::gw
