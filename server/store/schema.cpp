#include "server/store/schema.hpp"

#include <filesystem>
#include <stdexcept>

#include "server/store/migrations/migrations.hpp"
#include "server/store/sqlite.hpp"

namespace quasi::server {
namespace {

std::int64_t pragma(Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.integer(0) : 0;
}

/// Runs the steps in one transaction. The version is a part of it.
void run_steps(Database& database, std::span<const Migration> steps) {
  // A step may make a table again under its old name, so references are checked at its end.
  database.execute("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE;");
  for (const Migration& step : steps) database.execute(step.sql);
  if (pragma(database, "SELECT count(*) FROM pragma_foreign_key_check") != 0)
    throw std::runtime_error(
        "quasi.db has rows that refer to missing rows; it stays at its version"
        ", restore it from a backup");
  database.execute(("PRAGMA application_id = " + std::to_string(kApplicationId) +
                    "; PRAGMA user_version = " + std::to_string(steps.back().version) + "; COMMIT;")
                       .c_str());
  database.execute("PRAGMA foreign_keys = ON;");
}

/// Copies the database to a file beside it. The copy gets its name after it is complete, checked
/// and synced. @return the path of the copy.
std::string back_up(Database& database, const DatabasePlace& place, std::int64_t version) {
  const std::string path = place.path + ".backup-v" + std::to_string(version);
  const std::string part = path + ".part";
  try {
    // A start that was interrupted may have left a part of a copy.
    place.files.remove(part);
    place.files.remove(part + "-journal");
    {
      Database copy(part, Database::Mode::kWriter, place.vfs);
      database.copy_to(copy);
      // Without this the copy needs a second file for its log.
      copy.execute("PRAGMA journal_mode = DELETE;");
      copy.quick_check();
    }
    place.files.open(part, FileSystem::Open::kReadWrite)->sync();
    place.files.rename(part, path);
    place.files.sync_directory(std::filesystem::path(path).parent_path().string());
  } catch (const SqliteError& error) {
    throw SqliteError(error.extended, "cannot copy quasi.db to " + path +
                                          " before its schema changes (" + error.what() +
                                          "); the database was not changed. Free space for a copy "
                                          "of quasi.db, then start the server again");
  }
  return path;
}

}  // namespace

std::int32_t schema_version() { return migrations().back().version; }

std::optional<Migrated> prepare_schema(Database& database, const DatabasePlace& place) {
  const std::int64_t application = pragma(database, "PRAGMA application_id");
  const std::int64_t version = pragma(database, "PRAGMA user_version");
  if (application == 0 && version == 0) {
    database.execute("PRAGMA journal_mode = WAL;");
    run_steps(database, migrations());
    return std::nullopt;
  }
  if (application != kApplicationId)
    throw std::runtime_error("quasi.db is a database of another program (application id " +
                             std::to_string(application) + "); choose another data directory");
  if (version > schema_version() || version < 1)
    throw std::runtime_error("quasi.db has schema " + std::to_string(version) +
                             ", this program knows 1 to " + std::to_string(schema_version()) +
                             "; nothing was changed. Start the version of quasi-server that wrote "
                             "it, or a newer one");
  database.execute("PRAGMA journal_mode = WAL;");
  if (version == schema_version()) return std::nullopt;
  Migrated migrated{.from = static_cast<std::int32_t>(version),
                    .to = schema_version(),
                    .backup_path = back_up(database, place, version)};
  for (const Migration& step : migrations().subspan(static_cast<std::size_t>(version)))
    run_steps(database, {&step, 1});
  return migrated;
}

}  // namespace quasi::server
