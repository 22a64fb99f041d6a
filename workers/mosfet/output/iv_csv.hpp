#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Writes the file iv.csv: one row for each finished bias point, in the order of the deck.
class IvCsv {
 public:
  explicit IvCsv(const std::filesystem::path& directory) : path_(directory / "iv.csv") {}

  /// Adds the row of a point and replaces the file. After a power failure the file is complete, old
  /// or new. @throws StorageError if the file cannot be written
  void add(int point, const PointResult& result);

 private:
  std::filesystem::path path_;
  std::map<int, std::string> rows_;
};

/// Writes iv.csv with all points. @throws StorageError
void write_iv_csv(const std::filesystem::path& directory, const std::vector<PointResult>& points);

}  // namespace quasi::mosfet
