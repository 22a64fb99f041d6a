#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/store/file_system.hpp"

namespace quasi::server {

class Database;

inline constexpr std::int32_t kApplicationId = 0x51554153;  ///< "QUAS"

/// The version of the schema that this program uses.
std::int32_t schema_version();

/// The database file and the layers through which it is reached.
struct DatabasePlace {
  std::string path;
  std::string vfs;    ///< SQLite's file layer; empty for the layer of the operating system
  FileSystem& files;  ///< the layer for copies of the file
};

/// A change of the schema that was carried out.
struct Migrated {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::string backup_path;  ///< a synced and checked copy of the database as it was before
};

/// Brings the schema to the version of this program and sets WAL mode. An empty database gets all
/// tables in one transaction. An older database is first copied to `PATH.backup-vN`, where N is its
/// version; then each missing step of migrations.hpp runs in a transaction of its own. A crash
/// leaves the database at one of the versions, never between two.
/// @return the change, if an older database was changed.
/// @throws std::runtime_error if the file belongs to another program or to a newer version; the
///         file is not changed then. @throws SqliteError, FileError if the copy or a step fails.
std::optional<Migrated> prepare_schema(Database& database, const DatabasePlace& place);

}  // namespace quasi::server
