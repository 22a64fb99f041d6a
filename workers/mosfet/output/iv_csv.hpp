#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Writes the file iv.csv while a sweep runs. It has one row for each finished bias point, in the
/// order of the deck. Each call replaces the whole file in one step. A process that is killed in
/// the middle of a call therefore leaves a whole file: either the old one or the new one.
class IvCsv {
 public:
  explicit IvCsv(const std::filesystem::path& directory) : path_(directory / "iv.csv") {}

  /// Adds the rows of some points and replaces the file.
  /// @param points  results by their position in the deck
  /// @throws StorageError if the file cannot be written
  void add(const std::map<int, PointResult>& points);

 private:
  std::filesystem::path path_;
  std::map<int, std::string> rows_;
};

/// Replaces iv.csv by a file with all points.
/// @throws StorageError if the file cannot be written
void write_iv_csv(const std::filesystem::path& directory, const std::vector<PointResult>& points);

}  // namespace quasi::mosfet
