#pragma once

#include <filesystem>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Writes small_signal.csv with one row for each point and frequency, or nothing if no point has a
/// small-signal response. @throws StorageError
void write_small_signal_csv(const std::filesystem::path& directory,
                            const std::vector<PointResult>& points);

}  // namespace quasi::mosfet
