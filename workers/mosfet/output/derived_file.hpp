#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "workers/io/hdf5.hpp"
#include "workers/mosfet/solver/sweep/derived.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Returns the figures of the transfer curves of a steady run; none for any other mode.
DerivedFigures derived_of(const Deck& deck, const std::vector<PointResult>& points);

/// Writes the group /derived of result.h5 and derived.csv, or nothing if there is no curve. @throws
/// StorageError
void write_derived(const DerivedFigures& figures, const std::filesystem::path& directory,
                   H5Writer* file);

/// Returns the figures in the form of the summary.
nlohmann::json derived_summary(const DerivedFigures& figures);

}  // namespace quasi::mosfet
