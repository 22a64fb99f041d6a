#include "server/service/queue_engine.hpp"

#include <vector>

#include "server/queue/refused.hpp"
#include "server/service/log.hpp"
#include "server/store/schema.hpp"

namespace quasi::server {
namespace {

constexpr int kExitCorrupt = 65;
constexpr int kExitIo = 74;

Refused storage_full() {
  return Refused(Refusal::kUnavailable, "STORAGE_FULL",
                 "the server's disk is full; nothing was changed, try again later")
      .retry_in(10'000);
}

Refused database_locked() {
  log(Level::kWarning, "database_locked",
      {{"what", "another process holds a write lock on quasi.db"},
       {"do", "end that process; only quasi-server may open the database"}});
  return Refused(Refusal::kUnavailable, "SERVER_BUSY",
                 "the server's database is locked by another process; nothing was changed, try "
                 "again later")
      .retry_in(10'000);
}

/// The answer to the tasks of a group that is undone because another one failed half-way.
Refused half_written() {
  log(Level::kError, "group_undone",
      {{"what", "a change failed after its first write, so the changes beside it were undone"},
       {"do", "report this fault of the program; callers try again by themselves"}});
  return Refused(Refusal::kUnavailable, "SERVER_BUSY",
                 "a fault of another change undid this one; nothing was changed, try again")
      .retry_in(100);
}

[[noreturn]] void die(const SqliteError& error) {
  throw StorageFatal(error.is_corrupt() ? kExitCorrupt : kExitIo, error.what());
}

/// Brings the schema of the database to the version of this program.
void migrate(Database& database, const QueueEngine::Place& place) {
  const auto migrated = prepare_schema(
      database, {.path = place.database_path, .vfs = place.vfs, .files = place.files});
  if (!migrated) return;
  log(Level::kInfo, "schema_changed",
      {{"from", std::to_string(migrated->from)},
       {"to", std::to_string(migrated->to)},
       {"backup", migrated->backup_path},
       {"do", "remove the backup once you do not want to return to the older version"}});
}

bool is_fatal(const SqliteError& error) { return error.is_io() || error.is_corrupt(); }

}  // namespace

QueueEngine::QueueEngine(const Place& place, LogStore& logs, RandomSource& random,
                         const QueueOptions& options, const Clock& clock)
    : clock_(clock),
      database_(place.database_path, Database::Mode::kWriter, place.vfs),
      store_((migrate(database_, place), database_)),
      access_(database_),
      audit_(database_),
      queue_(store_, logs, random, options),
      mark_(place.mark) {
  if (place.before_writing) place.before_writing(store_);
  recover(random);
}

void QueueEngine::compare_with_mark() {
  if (mark_ == nullptr) return;
  const NewestMark::Newest known = mark_->read();
  const std::int64_t found = store_.newest_event();
  if (known.event <= found) return;
  log(Level::kError, "database_log_cut",
      {{"what", "acknowledged work is lost: the write-ahead log quasi.db-wal was damaged"},
       {"newest_event_acknowledged", std::to_string(known.event)},
       {"newest_event_found", std::to_string(found)},
       {"do", "compare with a backup; check the disk"}});
  if (known.fence > store_.newest_fence()) store_.raise_fence(known.fence);
}

void QueueEngine::recover(RandomSource& random) {
  if (!store_.meta("epoch").empty() && store_.meta("clean_shutdown") != "1") {
    log(Level::kInfo, "checking_store", {{"why", "it was not closed properly"}});
    database_.quick_check();
  }
  database_.mark(Database::Boundary::kBeginImmediate);
  store_.set_meta("clean_shutdown", "0");
  compare_with_mark();
  if (store_.meta("store_id").empty()) {
    store_.set_meta("store_id", make_id('s', clock_.now().wall_ms, random));
    std::string key;
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t bits = random.next();
      key.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    }
    store_.set_meta("token_key", key);
  }
  const std::string epoch = store_.meta("epoch");
  store_.set_meta("epoch", std::to_string(epoch.empty() ? 1 : std::stoll(epoch) + 1));
  event_lines_.begin(store_, random);
  store_id_ = store_.meta("store_id");
  token_key_ = store_.meta("token_key");
  database_.mark(Database::Boundary::kCommit);
  queue_.recover(clock_.now());
}

void QueueEngine::roll_back() {
  try {
    database_.rollback_if_open();
    store_.take_changes();
    queue_.recover(clock_.now());
  } catch (const SqliteError& error) {
    die(error);  // the memory cannot be rebuilt: end properly instead of by std::terminate
  }
}

void QueueEngine::run_task(WriteTask& task, WriteContext& context, Failures& failures) {
  std::exception_ptr failure;
  const std::int64_t changes_before = database_.total_changes();
  if (!task.checks_first) database_.mark(Database::Boundary::kSavepoint);
  try {
    task.body(context);
  } catch (const Refused&) {
    failure = std::current_exception();
  } catch (const SqliteError& error) {
    if (error.is_full() || error.is_busy() || is_fatal(error)) throw;
    failure = std::current_exception();
    failures.memory_is_stale = true;
  } catch (const FileError& error) {
    // A log could not be written. A full disk is treated like a full database; any other error
    // means a failing disk.
    if (error.is_full()) throw;
    throw StorageFatal(kExitIo, error.what());
  } catch (const StorageFatal&) {
    throw;
  } catch (...) {
    failure = std::current_exception();
    failures.memory_is_stale = true;
  }
  failures.of_task.push_back(failure);
  if (task.checks_first) {
    failures.must_undo_the_group = failure && database_.total_changes() != changes_before;
    return;
  }
  if (failure) database_.mark(Database::Boundary::kRollbackToSavepoint);
  database_.mark(Database::Boundary::kRelease);
}

GroupOutcome QueueEngine::run_group(std::span<WriteTask> tasks) {
  Failures failures;
  const auto finish_all = [&](const std::exception_ptr& failure) {
    failures.of_task.resize(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::exception_ptr& own = failures.of_task[i];
      if (tasks[i].done) tasks[i].done(failure && !own ? failure : own);
    }
  };
  const auto undo_all = [&](Refused why) {
    roll_back();
    finish_all(std::make_exception_ptr(std::move(why)));
  };
  GroupOutcome outcome;
  try {
    const std::int64_t changes_before = database_.total_changes();
    database_.mark(Database::Boundary::kBeginImmediate);
    WriteContext context{
        .queue = queue_, .store = store_, .access = access_, .audit = audit_, .now = clock_.now()};
    for (WriteTask& task : tasks) {
      run_task(task, context, failures);
      if (failures.must_undo_the_group) {
        undo_all(half_written());
        return outcome;
      }
    }
    database_.mark(Database::Boundary::kCommit);
    outcome.wrote = database_.total_changes() != changes_before;
  } catch (const SqliteError& error) {
    if (!error.is_full() && !error.is_busy()) die(error);
    failures.of_task.clear();
    undo_all(error.is_busy() ? database_locked() : storage_full());
    return outcome;
  } catch (const FileError& error) {
    if (!error.is_full()) throw StorageFatal(kExitIo, error.what());
    failures.of_task.clear();
    undo_all(storage_full());
    return outcome;
  }
  if (outcome.wrote && mark_ != nullptr)
    mark_->write({.event = store_.newest_event(), .fence = store_.newest_fence()});
  outcome.changes = store_.take_changes();
  if (failures.memory_is_stale) roll_back();
  outcome.jobs_ready = queue_.take_ready_flag();
  finish_all(nullptr);
  return outcome;
}

void QueueEngine::close() {
  try {
    store_.set_meta("clean_shutdown", "1");
  } catch (const SqliteError& error) {
    // The disk is full or the file is locked. The next start then checks the file, which is
    // harmless.
    if (!error.is_full() && !error.is_busy()) die(error);
  }
  checkpoint(Database::Checkpoint::kTruncate);
}

void QueueEngine::checkpoint(Database::Checkpoint mode) {
  try {
    database_.checkpoint(mode);
  } catch (const SqliteError& error) {
    if (error.is_full() || error.is_busy()) {
      log(Level::kWarning, "checkpoint_postponed", {{"reason", error.what()}});
      return;
    }
    die(error);
  }
}

}  // namespace quasi::server
