#pragma once

#include <filesystem>
#include <vector>

#include "workers/io/result_root.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Begin here: writes result.h5 and the CSV files of the run's mode into `directory`.
/// derived_file.hpp and iv_csv.hpp write the other files, summary.hpp the summary. @throws
/// StorageError
void write_results(const Deck& deck, const std::filesystem::path& directory,
                   const std::vector<PointResult>& points, const InputRecord& inputs);

}  // namespace quasi::mosfet
