#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/wave_vector/wave_vector_elements.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// Writes the group /perturbations_at_q of result.h5, eV/Bohr, and with modes the group
/// /modes_at_q, meV. @pre the list is not empty
/// @throws StorageError
void write_wave_vectors(const std::vector<WaveVectorElements>& list, const MeanField& field,
                        H5Writer& file);

/// Writes the couplings of all sets of modes, bras and kets at every q as text, one line each
/// (docs/reference/gw.md, "Wave vectors"). @throws StorageError
void write_wave_vector_table(const std::filesystem::path& path,
                             const std::vector<WaveVectorElements>& list, const MeanField& field);

/// Returns the norms of the displacements at every q and k, eV/Bohr, and the largest coupling of
/// each set of modes, meV.
nlohmann::json summary_of_wave_vectors(const std::vector<WaveVectorElements>& list,
                                       const MeanField& field);

/// Formats the tables of that summary.
std::string table_of_wave_vectors(const nlohmann::json& summary);

}  // namespace quasi::gw
