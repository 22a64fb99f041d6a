#include "server/store/sqlite.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace quasi::server {
namespace {

constexpr int kBusyMs = 5'000;

/// Sets what holds for all connections, before the first one is opened. SQLite would count its
/// memory under a lock at each allocation, and nothing reads these counts.
void configure_sqlite() {
  static const int done = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(done);
}

/// After a failure of the disk the connection writes nothing more. Otherwise closing it would move
/// the log into the file and sync again.
void stop_writing_after(sqlite3* handle, int code) {
  if ((code & 0xFF) == SQLITE_IOERR)
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

[[noreturn]] void fail(sqlite3* handle, int code, const std::string& what) {
  const int extended = handle != nullptr ? sqlite3_extended_errcode(handle) : code;
  const char* message = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const SqliteError error(extended != SQLITE_OK ? extended : code, what + ": " + message);
  if (handle != nullptr) stop_writing_after(handle, code);
  throw error;
}

}  // namespace

bool SqliteError::is_constraint() const { return code == SQLITE_CONSTRAINT; }
bool SqliteError::is_full() const { return code == SQLITE_FULL; }
bool SqliteError::is_corrupt() const { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }
bool SqliteError::is_io() const { return code == SQLITE_IOERR; }
bool SqliteError::is_busy() const { return code == SQLITE_BUSY || code == SQLITE_LOCKED; }

Database::Database(const std::string& path, Mode mode, const std::string& vfs) {
  configure_sqlite();
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READWRITE |
                    (mode == Mode::kWriter ? SQLITE_OPEN_CREATE : 0);
  const int code =
      sqlite3_open_v2(path.c_str(), &handle_, flags, vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) {
    const std::string message = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
    sqlite3_close_v2(handle_);
    throw SqliteError(code, "open " + path + ": " + message);
  }
  sqlite3_busy_timeout(handle_, kBusyMs);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // The mode is FULL because NORMAL loses acknowledged work when the power fails.
  execute(
      "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
      "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;");
  // In memory, the journal that undoes single statements is walked at the end of each, which makes
  // a group of n submissions cost n² steps. The layers of tests have no files without a name.
  execute(vfs.empty() ? "PRAGMA temp_store = FILE;" : "PRAGMA temp_store = MEMORY;");
  // A reader finds the pages that its own cache lacks in that of the system.
  if (mode == Mode::kReader) execute("PRAGMA query_only = ON; PRAGMA cache_size = -4096;");
  sqlite3_wal_autocheckpoint(handle_, 0);
  sqlite3_wal_hook(handle_, &Database::on_wal, this);
}

Database::~Database() {
  for (sqlite3_stmt* statement : boundaries_) sqlite3_finalize(statement);
  sqlite3_close_v2(handle_);
}

int Database::on_wal(void* self, sqlite3*, const char*, int pages) {
  static_cast<Database*>(self)->wal_pages_ = pages;
  return SQLITE_OK;
}

void Database::execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(handle_, code, std::string(sql).substr(0, 60));
}

void Database::mark(Boundary boundary) {
  static constexpr std::array<const char*, static_cast<std::size_t>(Boundary::kCount)> kTexts = {
      "BEGIN",          "BEGIN IMMEDIATE",  "COMMIT",      "ROLLBACK",
      "SAVEPOINT task", "ROLLBACK TO task", "RELEASE task"};
  const auto index = static_cast<std::size_t>(boundary);
  sqlite3_stmt*& statement = boundaries_[index];
  if (statement == nullptr) {
    const int code = sqlite3_prepare_v3(handle_, kTexts[index], -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) fail(handle_, code, kTexts[index]);
  }
  sqlite3_step(statement);
  // The reset repeats the error of the step.
  const int code = sqlite3_reset(statement);
  if (code != SQLITE_OK) fail(handle_, code, kTexts[index]);
}

std::int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(handle_); }

std::int64_t Database::total_changes() const { return sqlite3_total_changes64(handle_); }

void Database::rollback_if_open() {
  if (sqlite3_get_autocommit(handle_) == 0) mark(Boundary::kRollback);
}

std::int64_t Database::changes() const { return sqlite3_changes64(handle_); }

std::int32_t Database::checkpoint(Checkpoint mode) {
  int log = 0;
  int done = 0;
  // A copy of the database may read one moment of it for a long time, and the writer must not wait
  // for its end.
  sqlite3_busy_timeout(handle_, 0);
  const int code = sqlite3_wal_checkpoint_v2(
      handle_, nullptr,
      mode == Checkpoint::kPassive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE, &log,
      &done);
  sqlite3_busy_timeout(handle_, kBusyMs);
  // A concurrent reader is no failure: the next checkpoint moves the rest of the log.
  if (code != SQLITE_OK && (code & 0xFF) != SQLITE_BUSY) fail(handle_, code, "checkpoint");
  if (code == SQLITE_OK) wal_pages_ = log - done;
  return log - done;
}

void Database::quick_check() {
  Statement check(*this, "PRAGMA quick_check(1)");
  if (!check.step() || check.text(0) != "ok")
    throw SqliteError(SQLITE_CORRUPT, "the database is damaged: " + check.text(0));
}

void Database::copy_to(Database& copy) {
  sqlite3_backup* backup = sqlite3_backup_init(copy.handle_, "main", handle_, "main");
  if (backup == nullptr) fail(copy.handle_, SQLITE_ERROR, "copy");
  sqlite3_backup_step(backup, -1);
  // The result of the copy is the one of its end, which repeats an error of the step.
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) fail(copy.handle_, code, "copy");
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  const int code = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) fail(database.handle(), code, std::string(sql));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}

Statement& StatementCache::get(std::string_view text) {
  ++calls_;
  auto known = statements_.find(text);
  if (known == statements_.end()) {
    if (statements_.size() >= most_)
      statements_.erase(std::min_element(
          statements_.begin(), statements_.end(),
          [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    known = statements_.emplace(text, Kept{.statement = Statement(database_, text)}).first;
    ++prepared_;
  }
  known->second.used = calls_;
  return known->second.statement;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const int extended = sqlite3_extended_errcode(database_->handle());
  const std::string message =
      std::string(sqlite3_errmsg(database_->handle())) + " in: " + sqlite3_sql(statement_);
  sqlite3_reset(statement_);
  stop_writing_after(database_->handle(), extended);
  throw SqliteError(extended, message);
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::optional<std::int32_t> Statement::optional_small(int column) const {
  if (is_null(column)) return std::nullopt;
  return small(column);
}

// Bound bytes are copied unless the statement is run in the same expression, because callers bind
// temporaries.
void Statement::bind_integer(int index, std::int64_t value) {
  if (sqlite3_bind_int64(statement_, index, value) != SQLITE_OK)
    fail(database_->handle(), SQLITE_ERROR, "bind");
}
void Statement::bind_real(int index, double value) {
  if (sqlite3_bind_double(statement_, index, value) != SQLITE_OK)
    fail(database_->handle(), SQLITE_ERROR, "bind");
}
void Statement::bind_text(int index, std::string_view value) {
  if (sqlite3_bind_text(statement_, index, value.data() ? value.data() : "",
                        static_cast<int>(value.size()),
                        borrows_ ? SQLITE_STATIC : SQLITE_TRANSIENT) != SQLITE_OK)
    fail(database_->handle(), SQLITE_ERROR, "bind");
}
void Statement::bind_blob(int index, std::string_view value) {
  if (sqlite3_bind_blob(statement_, index, value.data() ? value.data() : "",
                        static_cast<int>(value.size()),
                        borrows_ ? SQLITE_STATIC : SQLITE_TRANSIENT) != SQLITE_OK)
    fail(database_->handle(), SQLITE_ERROR, "bind");
}
void Statement::bind_null(int index) {
  if (sqlite3_bind_null(statement_, index) != SQLITE_OK)
    fail(database_->handle(), SQLITE_ERROR, "bind");
}

}  // namespace quasi::server
