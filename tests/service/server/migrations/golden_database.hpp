#pragma once

// Databases that the programs of older versions left. `golden/database_vN.sql` has schema version N
// and was written by quasi-server, its workers and its clients of that version.
//
// Nothing was released with schemas 2 to 11, so no golden database has one of them. They exist
// between the steps from 1 to 12, and the test of power cuts starts the server from each of them.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "server/store/migrations/migrations.hpp"
#include "server/store/sqlite.hpp"

namespace quasi::server::test {

inline std::string golden_text(std::int64_t version) {
  const std::ifstream in(std::string(QUASI_GOLDEN_DIR) + "/database_v" + std::to_string(version) +
                         ".sql");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Writes the golden database of a version to `path` in a file system of SQLite.
inline void write_golden(std::int64_t version, const std::string& path,
                         const std::string& vfs = "") {
  Database database(path, Database::Mode::kWriter, vfs);
  database.execute("PRAGMA journal_mode = WAL;");
  database.execute(golden_text(version).c_str());
  database.checkpoint(Database::Checkpoint::kTruncate);
}

/// All rows of a query, one a line.
inline std::string rows_of(Database& database, const std::string& sql, int columns) {
  Statement statement(database, sql);
  std::string text;
  while (statement.step()) {
    for (int i = 0; i < columns; ++i) text += statement.text(i) + "|";
    text += "\n";
  }
  return text;
}

inline std::int64_t version_of(Database& database) {
  return std::stoll(rows_of(database, "PRAGMA user_version", 1));
}

inline std::string schema_of(Database& database) {
  return rows_of(database, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2", 4);
}

/// The schema of a version, made from nothing.
inline std::string schema_of_version(std::int64_t version) {
  Database database(":memory:", Database::Mode::kWriter);
  for (const Migration& step : migrations())
    if (step.version <= version) database.execute(step.sql);
  return schema_of(database);
}

inline void expect_sound(Database& database) {
  EXPECT_EQ(rows_of(database, "PRAGMA integrity_check", 1), "ok|\n");
  EXPECT_EQ(rows_of(database, "PRAGMA foreign_key_check", 1), "");
}

}  // namespace quasi::server::test
