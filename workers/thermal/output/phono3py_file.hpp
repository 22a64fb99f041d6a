#pragma once

#include <filesystem>

#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"

namespace quasi::thermal {

/// Writes kappa-m<N1><N2><N3>.hdf5 with the names, shapes and units of phono3py [togo2023]
/// (`--export phono3py`). Frequency and gamma are in THz (not angular; gamma is half the linewidth,
/// w/4π), group velocities in THz Å, heat capacities in eV/K. As in phono3py,
///   mode_kappa = kappa_unit_conversion · heat_capacity · gv_by_gv / (2 Σ gamma),
///   kappa = Σ mode_kappa / Σ weight.
/// `gamma` holds three and four phonons; isotopes and boundaries have separate arrays. If the BTE
/// was iterated, kappa and mode_kappa are the converged values, and those above are kappa_RTA and
/// mode_kappa_RTA. κ of a sheet refers to the cell in this file.
/// @throws StorageError naming the file.
void write_phono3py_file(const Deck& deck, const SolvedCase& solved,
                         const std::filesystem::path& directory);

}  // namespace quasi::thermal
