#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

// Writes the named errors of all energies (docs/theory/gw.md 9.6) to every result of a job.
namespace quasi::gw {

/// Returns the part "errors" of the summary: each row with its values, or the words "not examined".
nlohmann::json summary_of_errors(const ErrorTable& errors);

/// Formats the part "errors" of a summary: the largest error of all states and that of the gap.
std::string table_of_error_rows(const nlohmann::json& errors);

/// Writes the examined rows below /errors, and the names of the others.
void write_error_rows(const ErrorTable& errors, H5Writer& file);

/// Writes `errors.dat`: a line for each state with the examined rows.
/// @throws StorageError if the file cannot be written
void write_error_file(const std::filesystem::path& directory, const Calculation& run);

}  // namespace quasi::gw
