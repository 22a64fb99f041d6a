#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/queue/clock.hpp"
#include "server/queue/queue_core.hpp"
#include "server/service/event_lines.hpp"
#include "server/store/access_store.hpp"
#include "server/store/audit/audit_store.hpp"
#include "server/store/log_store.hpp"
#include "server/store/newest_mark.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

/// The disk failed under the database. Its contents are unknown, and the process must end.
struct StorageFatal : std::runtime_error {
  StorageFatal(int exit_status_, const std::string& message)
      : std::runtime_error(message), exit_status(exit_status_) {}
  int exit_status;  ///< 74 I/O error, 65 corrupt
};

/// The objects that a write may use.
struct WriteContext {
  QueueCore& queue;
  SqliteStore& store;
  AccessStore& access;
  AuditStore& audit;
  Now now;
};

/// One write. Its body runs in a savepoint, so that a body that fails changes nothing. `done` runs
/// after the commit of the group, with the exception of the body if there was one.
struct WriteTask {
  std::function<void(WriteContext&)> body;
  std::function<void(std::exception_ptr)> done;
  /// The body makes every check before its first write. Then it needs no savepoint, for which
  /// SQLite would copy each page before it changes. If it fails later all the same, which is a
  /// fault of the program, the whole group is undone and the others are told to try again.
  bool checks_first = false;
};

/// The changes of a group.
struct GroupOutcome {
  bool wrote = false;                ///< something was committed
  bool jobs_ready = false;           ///< jobs became ready to be granted
  std::vector<Change> changes = {};  ///< what was committed about jobs
};

/// Begin here: server/service runs the queue over its database. This class opens, recovers and
/// commits groups without threads of its own. Tests call it directly; in production the thread of
/// `Writer` does.
class QueueEngine {
 public:
  /// The files of the engine.
  struct Place {
    std::string database_path;
    std::string vfs;  ///< SQLite's file layer; empty for the layer of the operating system
    FileSystem& files = system_files();  ///< holds the copy that is made before the schema changes
    NewestMark* mark = nullptr;          ///< detects that the database lost its newest commits
    /// Called after the database was opened and before the first write to it.
    std::function<void(SqliteStore&)> before_writing = {};
  };

  /// Opens the database, creating it or changing its schema if needed, and recovers: every open
  /// lease gets a full time to live. If the mark knows
  /// of commits that the database has lost, the log reports them and their fences are not granted
  /// again.
  QueueEngine(const Place& place, LogStore& logs, RandomSource& random, const QueueOptions& options,
              const Clock& clock);

  /// Runs the tasks in one transaction, commits once, then calls every `done`. A full disk refuses
  /// the whole group (UNAVAILABLE / STORAGE_FULL).
  /// @throws StorageFatal; the object must not be used after it.
  GroupOutcome run_group(std::span<WriteTask> tasks);

  /// Moves the write-ahead log into the database file: when the log is long, or completely when the
  /// queue is idle.
  void checkpoint(Database::Checkpoint mode);
  std::int64_t wal_pages() const { return database_.wal_pages(); }
  /// Closes the database. It is the last write; after it the next start need not check the file.
  void close();

  const std::string& store_id() const { return store_id_; }
  /// Key of the MACs on page and resume tokens.
  const std::string& token_key() const { return token_key_; }
  /// The lines of the event log, which resume tokens name.
  const EventLines& event_lines() const { return event_lines_; }
  Database& database() { return database_; }
  SqliteStore& store() { return store_; }
  AccessStore& access() { return access_; }
  QueueCore& queue() { return queue_; }

 private:
  /// The exceptions of the tasks of a group, and what they mean for the others.
  struct Failures {
    std::vector<std::exception_ptr> of_task;
    bool memory_is_stale = false;      ///< a bug left state in memory half changed
    bool must_undo_the_group = false;  ///< a task without savepoint failed after a write
  };

  void recover(RandomSource& random);
  void compare_with_mark();
  /// Runs one task of an open transaction. @throws what ends the whole group
  void run_task(WriteTask& task, WriteContext& context, Failures& failures);
  /// Rolls back an open transaction and rebuilds the state that lives only in memory.
  /// @throws StorageFatal if the store cannot be read.
  void roll_back();

  const Clock& clock_;
  Database database_;
  SqliteStore store_;
  AccessStore access_;
  AuditStore audit_;
  QueueCore queue_;
  NewestMark* mark_;
  std::string store_id_;
  std::string token_key_;
  EventLines event_lines_;
};

}  // namespace quasi::server
