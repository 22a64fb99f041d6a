#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/views/console.hpp"

/// The figures of a result as columns of a table.
namespace quasi::client {

/// A table whose columns appear with the first row that has them.
class Csv {
 public:
  /// Adds a row of named cells.
  void add(const std::vector<std::pair<std::string, std::string>>& cells);
  /// The table in CSV (RFC 4180), with the names of the columns in its first line. A cell that a
  /// row lacks is empty.
  std::string text() const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace quasi::client
