#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Writes the file iv.csv while a sweep runs: one row for each finished bias point, in the order of
/// the deck. A process that ends at any moment leaves the rows of before or of after a call.
class IvCsv {
 public:
  explicit IvCsv(const std::filesystem::path& directory) : path_(directory / "iv.csv") {}

  /// Adds the rows of some points, by their place in the deck, and replaces the file.
  /// @throws StorageError if the file cannot be written
  void add(const std::map<int, PointResult>& points);

 private:
  std::filesystem::path path_;
  std::map<int, std::string> rows_;
};

/// Replaces iv.csv by a file with all points. @throws StorageError
void write_iv_csv(const std::filesystem::path& directory, const std::vector<PointResult>& points);

}  // namespace quasi::mosfet
