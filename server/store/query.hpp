#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/store/sqlite.hpp"

namespace quasi::server {

/// The first row of a statement, converted by `read`.
template <class Row, class Read>
std::optional<Row> one(Statement& statement, Read read) {
  Rows rows(statement);
  if (!rows.next()) return std::nullopt;
  return read(*rows);
}

/// All rows of a statement, each converted by `read`.
template <class Row, class Read>
std::vector<Row> all(Statement& statement, Read read) {
  std::vector<Row> list;
  Rows rows(statement);
  while (rows.next()) list.push_back(read(*rows));
  return list;
}
inline std::string first_text(const Statement& row) { return row.text(0); }

}  // namespace quasi::server
