#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/mode_elements.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// Writes the group /modes of result.h5, meV. @throws StorageError
void write_modes(const ModeElements& phonons, const DisplacementElements& displaced,
                 H5Writer& file);

/// Writes the couplings of all sets of modes, bras and kets as text, one line each
/// (docs/reference/gw.md, "Phonon modes"). @throws StorageError
void write_mode_table(const std::filesystem::path& path, const ModeElements& phonons,
                      const DisplacementElements& displaced, const MeanField& field);

/// Returns the sets of modes, and the couplings inside each multiplet, meV.
nlohmann::json summary_of_modes(const ModeElements& phonons, const DisplacementElements& displaced,
                                const MeanField& field);

/// Formats the table of that summary.
std::string table_of_modes(const nlohmann::json& summary);

}  // namespace quasi::gw
