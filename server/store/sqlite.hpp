#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

struct sqlite3;
struct sqlite3_stmt;

namespace quasi::server {

/// A call to SQLite failed. `code` is the primary result code, `extended` the extended one.
struct SqliteError : std::runtime_error {
  SqliteError(int extended_, const std::string& message)
      : std::runtime_error(message), code(extended_ & 0xFF), extended(extended_) {}
  /// A trigger, CHECK or UNIQUE constraint refused the statement. This is a bug of the server; the
  /// statement is not committed.
  bool is_constraint() const;
  bool is_full() const;
  bool is_corrupt() const;
  /// Reading or writing the file failed, so the contents of the disk are unknown.
  bool is_io() const;
  bool is_busy() const;  ///< another process held a lock for longer than the time-out
  int code;
  int extended;
};

/// One connection. It is not thread-safe: one thread uses it at a time.
class Database {
 public:
  enum class Mode { kWriter, kReader };

  /// Opens the file; a writer creates it if it is missing. An empty `vfs` selects the file layer of
  /// the system.
  /// @throws SqliteError.
  Database(const std::string& path, Mode mode, const std::string& vfs = {});
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs statements that return no rows.
  void execute(const char* sql);
  /// Begins or ends a transaction, or a savepoint within one, by a statement that is prepared once.
  /// @throws SqliteError.
  enum class Boundary {
    kBegin,
    kBeginImmediate,
    kCommit,
    kRollback,
    kSavepoint,
    kRollbackToSavepoint,
    kRelease,
    kCount
  };
  void mark(Boundary boundary);
  std::int64_t last_insert_id() const;
  std::int64_t changes() const;
  /// Number of rows changed since the connection was opened.
  std::int64_t total_changes() const;
  /// Rolls back if a transaction is open. SQLite itself ends some transactions on failure.
  void rollback_if_open();
  /// Moves pages of the write-ahead log into the file. @return number of pages left in the log.
  enum class Checkpoint { kPassive, kTruncate };
  std::int32_t checkpoint(Checkpoint mode);
  std::int64_t wal_pages() const { return wal_pages_; }
  /// Checks the whole file for damage. @throws SqliteError (corrupt) with the first damage found.
  void quick_check();
  /// Overwrites the database `copy` with the contents of this one, in one step.
  void copy_to(Database& copy);
  sqlite3* handle() const { return handle_; }

 private:
  static int on_wal(void* self, sqlite3*, const char*, int pages);
  sqlite3* handle_ = nullptr;
  std::array<sqlite3_stmt*, static_cast<std::size_t>(Boundary::kCount)> boundaries_{};
  std::int64_t wal_pages_ = 0;
};

/// A prepared statement. Its `Row` resets and unbinds it after each use.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds the values in order, from parameter 1 on, and leaves the statement ready to step.
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  /// Binds one value. It serves lists whose length is known at run time only.
  void bind_at(int index, std::int64_t value) { bind_integer(index, value); }
  void bind_at(int index, std::string_view value) { bind_text(index, value); }
  /// Runs a statement that returns no rows, with the values that are bound.
  void run();
  /// Runs a statement that returns no rows with these values, whose bytes are not copied.
  template <class First, class... More>
  void run(const First& first, const More&... more) {
    const Borrowed borrowed(*this);
    int index = 0;
    bind_one(++index, first);
    (bind_one(++index, more), ...);
    while (step()) {
    }
  }
  /// Advances to the next row. @return true while there is a row.
  bool step();
  void reset();

  std::int64_t integer(int column) const;
  std::int32_t small(int column) const { return static_cast<std::int32_t>(integer(column)); }
  double real(int column) const;
  std::string text(int column) const;  ///< also of blobs; "" for NULL
  bool is_null(int column) const;
  std::optional<std::int32_t> optional_small(int column) const;

 private:
  /// Binds bytes without copying them for as long as it lives.
  struct Borrowed {
    explicit Borrowed(Statement& owner) : statement(owner) { statement.borrows_ = true; }
    ~Borrowed() {
      statement.reset();
      statement.borrows_ = false;
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Statement& statement;
  };

  void bind_integer(int index, std::int64_t value);
  void bind_real(int index, double value);
  void bind_text(int index, std::string_view value);
  void bind_null(int index);
  void bind_blob(int index, std::string_view value);

 public:
  /// Marks bytes that are bound as a BLOB instead of as text.
  struct Blob {
    std::string_view bytes;
  };

 private:
  void bind_one(int index, std::string_view value) { bind_text(index, value); }
  void bind_one(int index, const std::string& value) { bind_text(index, value); }
  void bind_one(int index, const char* value) { bind_text(index, value); }
  void bind_one(int index, Blob value) { bind_blob(index, value.bytes); }
  void bind_one(int index, std::nullopt_t) { bind_null(index); }
  template <class Value>
  void bind_one(int index, const std::optional<Value>& value) {
    if (value)
      bind_one(index, *value);
    else
      bind_null(index);
  }
  template <class Value>
  requires std::is_integral_v<Value> || std::is_enum_v<Value>
  void bind_one(int index, Value value) { bind_integer(index, static_cast<std::int64_t>(value)); }
  void bind_one(int index, double value) { bind_real(index, value); }

  Database* database_;
  sqlite3_stmt* statement_ = nullptr;
  bool borrows_ = false;  ///< bytes that are bound outlive the run of the statement
};

/// Keeps the prepared statements of one database. Each is found again by its text, so a
/// text made at run time is as good as a constant. Beyond `most` statements the one that was used
/// longest ago gives way.
class StatementCache {
 public:
  explicit StatementCache(Database& database,
                          std::size_t most = std::numeric_limits<std::size_t>::max())
      : database_(database), most_(most) {}
  /// @return the statement of this text; it lives until `most` other texts were asked for.
  Statement& get(std::string_view text);
  std::int64_t prepared() const { return prepared_; }

 private:
  struct Kept {
    Statement statement;
    std::int64_t used = 0;  ///< number of the last call of get() for it
  };
  Database& database_;
  std::size_t most_;
  std::int64_t calls_ = 0, prepared_ = 0;
  std::map<std::string, Kept, std::less<>> statements_;
};

/// Resets the statement when the reader of its rows is done, so that no read transaction stays
/// open.
class Rows {
 public:
  explicit Rows(Statement& statement) : statement_(statement) {}
  ~Rows() { statement_.reset(); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  bool next() { return statement_.step(); }
  const Statement* operator->() const { return &statement_; }
  const Statement& operator*() const { return statement_; }

 private:
  Statement& statement_;
};

}  // namespace quasi::server
