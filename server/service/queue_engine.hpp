#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "server/queue/clock.hpp"
#include "server/queue/queue_core.hpp"
#include "server/store/log_store.hpp"
#include "server/store/newest_mark.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

/// The disk failed under the database: what is on it is unknown, and the process must end.
struct StorageFatal : std::runtime_error {
  StorageFatal(int exit_status_, const std::string& message)
      : std::runtime_error(message), exit_status(exit_status_) {}
  int exit_status;  ///< 74 I/O error, 65 corrupt
};

/// What a write may use.
struct WriteContext {
  QueueCore& queue;
  SqliteStore& store;
  Now now;
};

/// One write: its body runs in a savepoint, `done` after the commit that covers it (with what the
/// body threw, or nothing).
struct WriteTask {
  std::function<void(WriteContext&)> body;
  std::function<void(std::exception_ptr)> done;
};

/// What a group changed.
struct GroupOutcome {
  bool wrote = false;       ///< something was committed
  bool jobs_ready = false;  ///< jobs became ready to be granted
};

/// The queue over its database, without threads: opening, recovery and group commit. Tests drive
/// it directly; in production the Writer's thread does.
class QueueEngine {
 public:
  /// What the engine is opened with.
  struct Place {
    std::string database_path;
    std::string vfs;             ///< SQLite's file layer; empty for the system's.
    NewestMark* mark = nullptr;  ///< Tells when the database lost its newest commits.
    /// Called after the database was opened and before it is written to.
    std::function<void(SqliteStore&)> before_writing = {};
  };

  /// Opens (and if needed creates) the database, and recovers: every open lease gets its time, logs
  /// are cut to their committed length. A database that lost commits which the mark knows of is
  /// reported in the log, and the fences of those commits are not given out again.
  QueueEngine(const Place& place, LogStore& logs, RandomSource& random, const QueueOptions& options,
              const Clock& clock);

  /// Runs the tasks in one transaction, each in a savepoint of its own, commits once, then calls
  /// every `done`. A full disk refuses the whole group (UNAVAILABLE / STORAGE_FULL).
  /// @throws StorageFatal after which the object must not be used.
  GroupOutcome run_group(std::span<WriteTask> tasks);

  /// Moves the write-ahead log into the database file when it is long, or wholly when idle.
  void checkpoint(Database::Checkpoint mode);
  std::int64_t wal_pages() const { return database_.wal_pages(); }
  /// The last thing that is written: the next start need not check the file.
  void close();

  const std::string& store_id() const { return store_id_; }
  /// Key of the MACs on page and resume tokens.
  const std::string& token_key() const { return token_key_; }
  Database& database() { return database_; }
  SqliteStore& store() { return store_; }
  QueueCore& queue() { return queue_; }

 private:
  void recover(LogStore& logs, RandomSource& random);
  void compare_with_mark();
  /// Undoes an open transaction and rebuilds what lives in memory alone.
  void roll_back();

  const Clock& clock_;
  LogStore& logs_;
  Database database_;
  SqliteStore store_;
  QueueCore queue_;
  NewestMark* mark_;
  std::string store_id_;
  std::string token_key_;
};

}  // namespace quasi::server
