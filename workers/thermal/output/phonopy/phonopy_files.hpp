#pragma once

#include <filesystem>

#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"

namespace quasi::thermal {

/// Begin here: writes harmonic results in the files of phonopy and phono3py [togo2023]
/// (`--export phono3py`), frequencies in THz (not angular):
/// - phonon-m<N1><N2><N3>.hdf5: frequency [n_q][nb], eigenvector [n_q][3·atom][nb] (complex, with
///   the phases of atomic positions: that of result.h5 times e^{−iq·r_κ}), grid_address [n_q][3];
///   left out where the eigenvectors exceed `eigenvector_limit_mib`;
/// - gruneisen.hdf5: gruneisen and frequency [n_irr][nb], qpoint, weight, mesh;
/// - band.hdf5, with `path`: path [segment][point][3], distance (1/Å, without 2π), frequency,
///   group_velocity (THz Å), segment_nqpoint.
/// @throws StorageError naming the file.
void write_phonopy_files(const Deck& deck, const SolvedCase& solved,
                         const std::filesystem::path& directory);

}  // namespace quasi::thermal
