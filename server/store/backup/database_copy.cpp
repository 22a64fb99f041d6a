#include "server/store/backup/database_copy.hpp"

#include <sqlite3.h>

#include <memory>

#include "server/store/schema.hpp"

namespace quasi::server {
namespace {

constexpr int kPages = 64;  // 256 KiB of the usual 4 KiB

std::int64_t number(Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.integer(0) : 0;
}

void require_sound(Database& database) {
  database.quick_check();
  Statement broken(database, "SELECT \"table\", rowid FROM pragma_foreign_key_check LIMIT 1");
  if (broken.step())
    throw SqliteError(SQLITE_CORRUPT, "the copy has a row of " + broken.text(0) +
                                          " that refers to a missing row: " + broken.text(1));
}

}  // namespace

void copy_database(const std::string& from, const std::string& to,
                   const std::function<void(std::int64_t)>& after_bytes) {
  Database source(from, Database::Mode::kReader);
  Database copy(to, Database::Mode::kWriter);
  // A small cache writes its pages soon. A large one would write all of them at the end, and their
  // sync would hold up those of the server.
  copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -256;");
  // SQLite begins a copy anew whenever another process has written. An open read transaction shows
  // one moment until the end.
  source.execute("BEGIN");
  const std::int64_t page_bytes = number(source, "PRAGMA page_size");
  (void)number(source, "SELECT count(*) FROM sqlite_master");
  std::unique_ptr<sqlite3_backup, decltype(&sqlite3_backup_finish)> backup(
      sqlite3_backup_init(copy.handle(), "main", source.handle(), "main"), sqlite3_backup_finish);
  if (!backup) throw SqliteError(SQLITE_ERROR, "cannot begin to copy " + from);
  while (sqlite3_backup_step(backup.get(), kPages) == SQLITE_OK) after_bytes(kPages * page_bytes);
  const int code = sqlite3_backup_finish(backup.release());
  source.execute("ROLLBACK");
  if (code != SQLITE_OK)
    throw SqliteError(code, "cannot copy " + from + " to " + to + ": " + sqlite3_errstr(code));
  copy.execute("PRAGMA journal_mode = DELETE; PRAGMA cache_size = -16384;");
  require_sound(copy);
}

StoreFacts store_facts(Database& database) {
  if (number(database, "PRAGMA application_id") != kApplicationId)
    throw SqliteError(SQLITE_NOTADB, "it is a database of another program");
  StoreFacts facts;
  facts.schema = static_cast<std::int32_t>(number(database, "PRAGMA user_version"));
  Statement id(database, "SELECT value FROM meta WHERE key='store_id'");
  if (id.step()) facts.store_id = id.text(0);
  facts.jobs = number(database, "SELECT count(*) FROM jobs");
  facts.unfinished_jobs = number(database, "SELECT count(*) FROM jobs WHERE state < 7");
  facts.open_attempts = number(database, "SELECT count(*) FROM attempts WHERE outcome = 0");
  facts.newest_event = number(database, "SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  facts.newest_fence = number(database, "SELECT value FROM counters WHERE name = 'fence'");
  return facts;
}

std::vector<StoredBlob> present_blobs(Database& database) {
  Statement rows(database, "SELECT digest, size_bytes FROM blobs WHERE state = 1 ORDER BY digest");
  std::vector<StoredBlob> blobs;
  while (rows.step()) blobs.push_back({.digest = rows.text(0), .size_bytes = rows.integer(1)});
  return blobs;
}

std::vector<StoredLog> logs_in_files(Database& database) {
  Statement rows(database,
                 "SELECT a.uid, a.folded_bytes FROM attempts a JOIN jobs j ON j.id = a.job_id "
                 "WHERE a.folded_bytes > 0 AND j.deleted_ms = 0 ORDER BY a.uid");
  std::vector<StoredLog> logs;
  while (rows.step()) logs.push_back({.attempt_uid = rows.text(0), .size_bytes = rows.integer(1)});
  return logs;
}

void mark_damaged(Database& database, const std::vector<std::string>& digests) {
  Statement mark(database, "UPDATE blobs SET state = 3 WHERE digest = ? AND state = 1");
  for (const std::string& digest : digests) mark.run(digest);
}

}  // namespace quasi::server
