#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/queue/store.hpp"
#include "server/store/change.hpp"
#include "server/store/sqlite.hpp"

namespace quasi::server {

struct UploadRow {
  std::string upload_id;
  std::string digest;
  std::int64_t size_bytes = 0;
  std::int64_t committed_bytes = 0;
  std::int64_t touched_ms = 0;
};

/// The numbers of column `state` of table `blobs`.
enum class BlobState : std::uint8_t { kPresent = 1, kDeleting = 2, kCorrupt = 3 };

/// Begin here: server/store keeps jobs in SQLite and files on disk. This class is the write side of
/// the database and holds all SQL that changes it. The caller opens the transactions. One thread
/// uses it. read_store.hpp is the read side, schema.hpp makes the tables, and blob_store.hpp and
/// log_store.hpp keep the files.
class SqliteStore : public Store {
 public:
  explicit SqliteStore(Database& database);
  ~SqliteStore() override;

  RowId insert_job(const NewJob& job) override;
  void count_new_jobs(const Scope& scope, std::int64_t n_jobs) override;
  void update_job(const JobRow& row) override;
  std::optional<JobRow> find_job(const Scope& scope, std::string_view uid) override;
  std::optional<JobRow> job(RowId id) override;
  std::string spec_of(RowId job) override;
  void mark_deleted(RowId job, std::int64_t now_ms) override;
  void set_summary(RowId job, const std::string& summary_json) override;
  std::vector<std::string> ready_placements(const std::string& pool) override;
  std::vector<std::string> ready_tenants(const std::string& pool) override;
  std::vector<std::int64_t> ready_owners(const std::string& pool,
                                         const std::string& tenant) override;
  std::vector<std::string> ready_placements_of(const OwnerQueue& queue) override;
  std::vector<JobRow> ready_heads(const OwnerQueue& queue, const std::string& placement,
                                  std::int32_t limit) override;
  std::vector<JobRow> oldest_ready(const OwnerQueue& queue, const std::string& placement) override;
  std::vector<JobRow> ready_heads_within(const OwnerQueue& queue, const std::string& placement,
                                         const HeadFilter& filter) override;
  std::int32_t promote_delayed(std::int64_t now_ms) override;
  std::vector<JobRow> delayed_retries() override;
  RowId insert_attempt(const AttemptRow& row) override;
  void update_attempt(const AttemptRow& row) override;
  std::optional<AttemptRow> find_attempt(std::string_view uid) override;
  std::optional<AttemptRow> attempt(RowId id) override;
  std::vector<AttemptRow> open_attempts() override;
  std::optional<RowId> find_result(const SharedAction& equals) override;
  void keep_result(const SharedAction& equals, RowId job) override;
  void set_source(RowId job, RowId source) override;
  void take_result(RowId job, RowId source) override;
  std::vector<JobRow> running_equals(const SharedAction& equals) override;
  std::vector<JobRow> waiting_equals(const SharedAction& equals, JobState state, RowId after,
                                     std::size_t limit) override;
  std::vector<RowId> blocked_groups() override;
  void insert_dependency(RowId job, RowId on, Condition condition) override;
  void insert_artifact_input(RowId job, RowId on, const ArtifactInput& input) override;
  std::vector<Dependent> dependents_of(RowId job) override;
  std::vector<JobRow> awaited_by(RowId job, std::int32_t limit) override;
  std::vector<ArtifactInput> artifact_inputs(RowId job, RowId on) override;
  std::optional<ArtifactRow> find_artifact(RowId job, const std::string& name) override;
  void insert_input(RowId job, const JobInput& input) override;
  std::vector<JobInput> inputs_of(RowId job) override;
  std::vector<JobInput> made_inputs_of(RowId job) override;
  void set_action(RowId job, const std::string& action) override;
  RowId insert_set(const JobSetRow& set) override;
  std::optional<JobSetRow> job_set(RowId id) override;
  std::optional<JobSetRow> find_set(const Scope& scope, std::string_view uid) override;
  void stop_set(RowId set, const std::string& why, std::int64_t now_ms) override;
  std::vector<StopRuleRow> stop_rules_of(RowId set) override;
  void count_in_stop_rule(RowId set, std::size_t position, bool has_figure) override;
  std::string summary_of(RowId job) override;
  std::string cancel_reason(RowId job) override;
  std::int64_t running_of_set(RowId set) override;
  std::int64_t failures_of_set(RowId set, std::int64_t limit) override;
  std::optional<JobRow> next_of_set(RowId set) override;
  std::vector<RowId> unfinished_of_set(RowId set) override;
  void append_log(const AttemptRow& attempt, std::string_view bytes) override;
  std::int64_t folded_log_bytes(RowId attempt) override;
  std::string log_tail(RowId attempt, std::int64_t offset, std::int64_t size) override;
  /// A log whose newest bytes are to be moved into its file.
  struct LogToFold {
    RowId attempt = 0;
    std::string uid;
    std::int64_t folded_bytes = 0;
    std::string data;
  };
  /// Logs of ended attempts, and those with at least `least_bytes` outside their file. At most
  /// `limit`, with at most 1 MiB each.
  std::vector<LogToFold> logs_to_fold(std::int64_t least_bytes, std::int32_t limit);
  /// Records that a log is in its file up to `bytes`.
  void set_folded(RowId attempt, std::int64_t bytes);
  std::vector<AttemptRow> open_attempts_of(const std::string& worker_id) override;
  std::vector<AttemptRow> attempts_of_acquire(const std::string& acquire_id) override;
  std::int64_t next_fence() override;
  std::int64_t newest_fence() override;
  void raise_fence(std::int64_t fence) override;
  /// Number of the newest event that was ever appended; 0 before the first.
  std::int64_t newest_event();
  std::int64_t append_event(const EventRow& event) override;
  void save_progress(RowId job, const std::string& body, std::int64_t now_ms) override;
  std::optional<std::int64_t> blob_size(const Scope& scope, std::string_view digest) override;
  void insert_artifact(RowId job, const ArtifactRow& artifact) override;
  std::optional<CheckpointRow> newest_checkpoint(RowId job) override;
  void insert_checkpoint(RowId job, const CheckpointRow& checkpoint) override;
  void drop_old_checkpoints(RowId job, std::int32_t keep) override;
  void save_worker(const WorkerRow& worker) override;
  std::vector<WorkerRow> workers() override;
  std::string worker_version(const std::string& worker_id) override;
  void add_estimate_ratio(Quantity quantity, const std::string& kind, const std::string& pool,
                          double ratio) override;
  EstimateRatios estimate_ratios_of(Quantity quantity, const std::string& kind,
                                    const std::string& pool) override;
  std::vector<EstimateRatios> estimate_ratios() override;
  std::vector<ServiceOrder> service_orders() override;
  void save_service_order(const ServiceOrder& order) override;
  void end_service_order(const std::string& worker_id, const std::string& device_id) override;
  /// Digest and size of the first present blob whose digest comes after this one.
  std::optional<std::pair<std::string, std::int64_t>> next_blob(const std::string& after);
  std::optional<RequestRow> find_request(const std::string& request_id) override;
  void save_request(const std::string& request_id, const RequestRow& request,
                    std::int64_t expires_ms) override;

  Allowance allowance_of(const Account& account) override;
  std::vector<std::pair<Account, Allowance>> allowances() override;
  void save_allowance(const Account& account, const Allowance& allowance) override;
  Used jobs_of_account(const Account& account) override;
  std::int64_t gpu_ms_of_account(const Account& account, std::int64_t first_day) override;
  std::vector<DayUse> day_uses(std::int64_t first_day) override;
  std::int64_t bytes_of_account(const Account& account) override;

  // A row of a blob is written after its file is complete, and removed after its file is gone.
  std::optional<BlobState> blob_state(std::string_view digest);
  /// Time of the row of a blob that is present. It changes when the blob is uploaded again.
  std::optional<std::int64_t> blob_created_ms(std::string_view digest);
  void insert_blob(const std::string& digest, std::int64_t size_bytes, std::int64_t now_ms);
  /// Notes that a principal has sent the whole blob.
  void add_holder(const std::string& digest, std::int64_t principal_id);
  void set_blob_state(const std::string& digest, BlobState state);
  void delete_blob(const std::string& digest);
  /// Unreferenced blobs older than `before_ms`, at most `limit`.
  std::vector<std::string> unreferenced_blobs(std::int64_t before_ms, std::int32_t limit);
  std::vector<std::string> blobs_in(BlobState state);

  // Deleted jobs and the files that belonged to them.
  /// Jobs that ended before `before_ms` and are not deleted, at most `limit`, oldest first.
  std::vector<std::string> jobs_ended_before(std::int64_t before_ms, std::int32_t limit);
  /// Deleted jobs whose logs may still be on the disk, at most `limit`.
  std::vector<RowId> deleted_jobs_with_logs(std::int32_t limit);
  std::vector<std::string> attempts_of(RowId job);
  void set_logs_removed(RowId job);

  // Uploads that may be continued.
  void save_upload(const UploadRow& upload);
  void delete_upload(const std::string& upload_id);
  std::vector<UploadRow> uploads();

  // Housekeeping of the tables.
  std::string meta(const std::string& key);
  void set_meta(const std::string& key, std::string_view value);
  /// Deletes expired answers and passing events older than `events_before_ms`. @return the number
  /// of deleted rows.
  std::int64_t prune(std::int64_t now_ms, std::int64_t events_before_ms, std::int32_t limit);

  /// Returns the changes since the last call and forgets them. Changes that were rolled back are
  /// among them.
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

 private:
  void insert_stop_rules(RowId set, const std::vector<StopRuleRow>& rules);
  /// Prepares a statement once and finds it again by its text.
  Statement& sql(std::string_view text);

  Database& database_;
  StatementCache statements_;
  std::vector<Change> changes_;
};

/// Conditions on a job j and on a blob b that a scope contains. Parameters 1 to 3 are the members
/// of the scope in their order.
extern const std::string_view kJobInScope;
extern const std::string_view kBlobInScope;

/// Columns of a jobs row in the order that read_job expects.
extern const std::string_view kJobColumns;
inline constexpr int kJobColumnCount = 44;
extern const std::string_view kAttemptColumns;
extern const std::string_view kEventColumns;
JobRow read_job(const Statement& row);
AttemptRow read_attempt(const Statement& row);
EventRow read_event(const Statement& row);

/// Joins plain names into one text column, one name a line.
std::string join_lines(const std::vector<std::string>& lines);
std::vector<std::string> split_lines(const std::string& text);

/// Text of the statement that read_log_tail() takes.
constexpr std::string_view kLogTailText =
    "SELECT at_byte, data FROM log_tails WHERE attempt_id=?1 AND at_byte >= coalesce((SELECT "
    "max(at_byte) FROM log_tails WHERE attempt_id=?1 AND at_byte<=?2), 9e18) ORDER BY at_byte";
/// Up to `size` bytes of a log from `offset` that are rows; "" if `offset` is in the file alone.
std::string read_log_tail(Statement& statement, RowId attempt, std::int64_t offset,
                          std::int64_t size);
/// Texts of the statements that read_workers() takes. It reads all workers that ever registered,
/// with their devices.
constexpr std::string_view kWorkersText =
    "SELECT id, incarnation, name, version, pool, kinds, last_seen_ms FROM workers";
constexpr std::string_view kWorkerDevicesText =
    "SELECT worker_id, id, backend, model, memory_bytes, slots FROM devices";
std::vector<WorkerRow> read_workers(Statement& of_workers, Statement& of_devices);

}  // namespace quasi::server
