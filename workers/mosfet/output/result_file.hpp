#pragma once

#include <filesystem>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Writes result.h5 and the CSV files of the run's mode into `directory`. @throws StorageError
void write_results(const Deck& deck, const std::filesystem::path& directory,
                   const std::vector<PointResult>& points);

}  // namespace quasi::mosfet
