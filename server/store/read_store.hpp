#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/queue/rows.hpp"
#include "server/store/retention/excess_results.hpp"
#include "server/store/sqlite.hpp"

namespace quasi::server {

/// A filter of jobs. All members that are set must match.
struct JobQuery {
  std::vector<std::string> uids;
  std::vector<JobState> states;
  std::vector<std::string> kinds;
  std::vector<std::pair<std::string, std::string>> labels;
  std::string name_prefix;
  std::int64_t created_after_ms = 0;
  std::int64_t created_before_ms = 0;
  std::string set_uid;  ///< the set that the jobs belong to
};

/// A job with the values that every view shows.
struct JobView {
  JobRow row;
  std::string spec;
  std::string owner;       ///< name of the principal
  std::string source_uid;  ///< job whose result it took, if its readers may see that one
  std::string progress;    ///< serialised quasi.v1.Progress; empty: none yet
  std::optional<CheckpointRow> checkpoint;
  std::int64_t log_bytes = 0;  ///< of the newest attempt
  std::string summary_json;    ///< set by find() only
  std::string set_uid;         ///< the set that it belongs to
};

/// A set of jobs, and its jobs by state.
struct JobSetView {
  JobSetRow row;  ///< `axes` and `stop_rules` are set by find_set() only
  std::string owner;
  std::vector<std::pair<JobState, std::int64_t>> counts;
};

struct JobIdentity {
  RowId id = 0;
  std::string uid;
};

struct LogView {
  std::string attempt_uid;
  std::int32_t number = 0;
  std::int64_t bytes = 0;
  bool ended = false;
  RowId attempt = 0;
  std::int64_t folded_bytes = 0;  ///< length of the part that is in the file
};

struct PoolCount {
  std::string pool;
  std::int64_t queued = 0;
  std::int64_t running = 0;
};

/// A job for which another one waits, or waited.
struct AwaitedView {
  std::string uid;
  std::string name;
  JobState state = JobState::kQueued;
  Condition condition = Condition::kSuccess;
};

struct OpenSlot {
  std::string worker_id;
  std::vector<std::string> device_ids;
  std::string job_uid;
};

/// The read side of the database, for one connection and one thread. Every call is one statement or
/// one short read transaction. No transaction stays open between calls. What belongs to principals
/// is read with a scope: jobs and blobs outside it are as if they were absent, with the same
/// statements (I15). Parts of a job are found by the row id that such a read gave.
class ReadStore {
 public:
  /// Filters of lists make texts of many kinds, so the statements that are kept have a limit (I20).
  static constexpr std::size_t kKeptStatements = 128;

  explicit ReadStore(const std::string& path);

  /// Reads within the life of this object see the store at one moment. It must be short.
  class Transaction {
   public:
    explicit Transaction(ReadStore& store);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

   private:
    Database& database_;
  };

  /// Finds a job by its uid or by a unique prefix of it.
  /// @throws Refused INVALID_ARGUMENT if the prefix fits several jobs.
  std::optional<JobView> find(const Scope& scope, const std::string& uid_or_prefix);
  /// Jobs beyond `cursor` in the requested order, at most `limit`. Cursor 0 starts at the end of
  /// the table. A query by label, or by a name that few jobs have, reads these jobs alone.
  enum class Order { kAscending, kDescending };
  struct Page {
    Order order = Order::kDescending;
    RowId cursor = 0;
    std::int32_t limit = 0;
  };
  std::vector<JobView> list(const Scope& scope, const JobQuery& query, const Page& page);
  /// The uid of a job that the query selects; empty if it does not.
  std::optional<std::string> uid_if_matching(const Scope& scope, const JobQuery& query, RowId job);
  std::optional<RowId> job_id_of(const Scope& scope, const std::string& uid);
  RowId newest_job();

  /// The jobs of the scope that a job waits for, or waited for, oldest first.
  std::vector<AwaitedView> dependencies_of(const Scope& scope, RowId job);
  /// An input that another job makes. Digest and size are empty until it is made.
  struct MadeInput {
    JobInput input;
    std::string job_uid;
  };
  std::vector<MadeInput> made_inputs_of(RowId job);

  /// Finds a set of jobs by its uid or by a unique prefix of it.
  /// @throws Refused INVALID_ARGUMENT if the prefix fits several sets.
  std::optional<JobSetView> find_set(const Scope& scope, const std::string& uid_or_prefix);
  /// The sets before `cursor` that have jobs, newest first. Cursor 0 begins with the newest.
  std::vector<JobSetView> list_sets(const Scope& scope, RowId cursor, std::int32_t limit);

  std::vector<StopRuleRow> stop_rules_of(RowId set);
  /// @return the reason for which the job was cancelled; "" if it was not, or none was given
  std::string cancel_reason(RowId job);

  std::vector<AttemptRow> attempts_of(RowId job, std::int32_t limit);
  std::vector<ArtifactRow> artifacts_of(RowId job, const std::string& after, std::int32_t limit);
  /// The log of attempt `number` of the job; 0 selects the newest attempt. Empty if there is no
  /// such attempt.
  /// Bytes of a log that are not in its file; "" if `offset` is in the file.
  std::string log_tail(RowId attempt, std::int64_t offset, std::int64_t size);
  std::optional<LogView> log_of(RowId job, std::int32_t number);

  std::int64_t newest_event();
  /// Events with a number above `seq`, the oldest first.
  std::vector<EventRow> events_after(std::int64_t seq, std::int32_t limit);

  std::optional<std::int64_t> blob_size(const Scope& scope, const std::string& digest);
  /// Time of the row of a blob that is present. It changes when the blob is uploaded again.
  std::optional<std::int64_t> blob_created_ms(const Scope& scope, const std::string& digest);
  bool blob_is_corrupt(const Scope& scope, const std::string& digest);
  /// Committed bytes of an upload.
  struct UploadView {
    std::string digest;
    std::int64_t size_bytes = 0;
    std::int64_t committed_bytes = 0;
  };
  std::optional<UploadView> upload(const std::string& upload_id);

  std::vector<ExcessResult> excess_results(const ResultLimits& limits) {
    return server::excess_results(database_, limits);
  }

  std::vector<PoolCount> pools();
  /// Number of ready jobs of equal placement that come before this one; it counts to `limit`.
  std::int64_t jobs_before(const JobRow& job, std::int64_t limit);
  /// The slots that jobs hold. The uid of a job outside the scope is empty.
  std::vector<OpenSlot> open_slots(const Scope& scope);
  std::vector<WorkerRow> workers();
  /// @return "" for a worker that is not known.
  std::string worker_name(const std::string& id) {
    Rows rows(sql("SELECT name FROM workers WHERE id=?").bind(id));
    return rows.next() ? rows->text(0) : std::string();
  }

  /// Number of statements prepared since the connection was opened.
  std::int64_t statements_prepared() const { return statements_.prepared(); }

 private:
  JobView read_view(const Statement& row);
  /// True if at most `kFewNames` jobs have a name with this prefix.
  bool is_rare(const std::string& name_prefix);
  std::vector<std::pair<JobState, std::int64_t>> counts_of_set(RowId set);
  /// True if the scope contains at most `kFewNames` jobs.
  bool is_narrow(const Scope& scope);
  /// Prepares a statement once and finds it again by its text.
  Statement& sql(std::string_view text) { return statements_.get(text); }

  Database database_;
  StatementCache statements_;
};

}  // namespace quasi::server
