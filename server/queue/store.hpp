#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/queue/estimates/correction.hpp"
#include "server/queue/rows.hpp"
#include "server/queue/turns/accounts.hpp"

namespace quasi::server {

/// The storage of the queue. One caller at a time; every call happens inside a transaction that the
/// owner of the caller opened. Production uses SQLite; model tests use a few maps.
class Store {
 public:
  virtual ~Store() = default;

  // Jobs.
  /// The caller also calls count_new_jobs().
  virtual RowId insert_job(const NewJob& job) = 0;
  /// Adds jobs that were inserted to the unfinished ones of their owner and tenant.
  virtual void count_new_jobs(const Scope& scope, std::int64_t n_jobs) = 0;
  virtual void update_job(const JobRow& row) = 0;
  virtual std::optional<JobRow> find_job(const Scope& scope, std::string_view uid) = 0;
  virtual std::optional<JobRow> job(RowId id) = 0;
  virtual std::string spec_of(RowId job) = 0;
  virtual void set_summary(RowId job, const std::string& summary_json) = 0;

  /// Marks a final job as deleted. Its artefacts, inputs, checkpoints, specification and summary
  /// go. Its row, attempts and state events stay, and find_job does not find it any more.
  virtual void mark_deleted(RowId job, std::int64_t now_ms) = 0;

  // Results that equal jobs take (docs/reference/cache.md).
  /// The job whose result a new job of this action takes. Empty if there is none whole.
  virtual std::optional<RowId> find_result(const SharedAction& equals) = 0;
  /// Makes the result of a job that of its action.
  virtual void keep_result(const SharedAction& equals, RowId job) = 0;
  /// Names the job whose result a waiting one takes next.
  virtual void set_source(RowId job, RowId source) = 0;
  /// Gives the artefacts and the summary of `source` to a job that succeeds by them.
  virtual void take_result(RowId job, RowId source) = 0;
  /// The jobs of this action that a worker has and that offer their result.
  virtual std::vector<JobRow> running_equals(const SharedAction& equals) = 0;
  /// The first jobs after `after` that wait in this state and may take a result of this action,
  /// oldest first.
  virtual std::vector<JobRow> waiting_equals(const SharedAction& equals, JobState state,
                                             RowId after, std::size_t limit) = 0;
  /// One blocked job of each owner and action.
  virtual std::vector<RowId> blocked_groups() = 0;

  // Jobs that wait for others (docs/reference/sweeps.md).
  virtual void insert_dependency(RowId job, RowId on, Condition condition) = 0;
  virtual void insert_artifact_input(RowId job, RowId on, const ArtifactInput& input) = 0;
  /// A job that waits, and the end for which it does.
  struct Dependent {
    JobRow job;
    Condition condition = Condition::kSuccess;
  };
  /// The blocked and held jobs that wait for this one, oldest first.
  virtual std::vector<Dependent> dependents_of(RowId job) = 0;
  /// The jobs for which this one still waits, oldest first, at most `limit`.
  virtual std::vector<JobRow> awaited_by(RowId job, std::int32_t limit) = 0;
  /// The inputs that `job` takes from `on`. Only slot and artefact are set.
  virtual std::vector<ArtifactInput> artifact_inputs(RowId job, RowId on) = 0;
  virtual std::optional<ArtifactRow> find_artifact(RowId job, const std::string& name) = 0;
  virtual void insert_input(RowId job, const JobInput& input) = 0;
  virtual std::vector<JobInput> inputs_of(RowId job) = 0;
  /// The known inputs among those that other jobs made.
  virtual std::vector<JobInput> made_inputs_of(RowId job) = 0;
  /// Sets the action of a job that waits, once all of its inputs are known.
  virtual void set_action(RowId job, const std::string& action) = 0;

  // Sets of jobs.
  virtual RowId insert_set(const JobSetRow& set) = 0;
  virtual std::optional<JobSetRow> job_set(RowId id) = 0;
  virtual std::optional<JobSetRow> find_set(const Scope& scope, std::string_view uid) = 0;
  /// Notes that the set has stopped because of failures.
  virtual void stop_set(RowId set, const std::string& why, std::int64_t now_ms) = 0;
  virtual std::vector<StopRuleRow> stop_rules_of(RowId set) = 0;
  /// Counts a job for the rule at `position`: as one that met it, or as one without the figure.
  virtual void count_in_stop_rule(RowId set, std::size_t position, bool has_figure) = 0;
  virtual std::string summary_of(RowId job) = 0;
  /// @return the reason for which the job was cancelled; "" if it was not, or none was given
  virtual std::string cancel_reason(RowId job) = 0;
  /// Number of jobs of the set that run, or that may be granted.
  virtual std::int64_t running_of_set(RowId set) = 0;
  /// Number of jobs of the set that failed by themselves; it counts to `limit`.
  virtual std::int64_t failures_of_set(RowId set, std::int64_t limit) = 0;
  /// The first job that waits because enough jobs of its set run.
  virtual std::optional<JobRow> next_of_set(RowId set) = 0;
  /// The jobs of the set that have not ended, newest first.
  virtual std::vector<RowId> unfinished_of_set(RowId set) = 0;

  // Waiting jobs that are ready.
  /// Placements with at least one ready job of the pool.
  virtual std::vector<std::string> ready_placements(const std::string& pool) = 0;
  /// Tenants, the owners of a tenant, and the placements of an owner that have ready jobs.
  virtual std::vector<std::string> ready_tenants(const std::string& pool) = 0;
  virtual std::vector<std::int64_t> ready_owners(const std::string& pool,
                                                 const std::string& tenant) = 0;
  virtual std::vector<std::string> ready_placements_of(const OwnerQueue& queue) = 0;
  /// The first ready jobs of an owner in one placement: highest priority first, then oldest.
  virtual std::vector<JobRow> ready_heads(const OwnerQueue& queue, const std::string& placement,
                                          std::int32_t limit) = 0;
  /// The oldest of these jobs at each priority.
  virtual std::vector<JobRow> oldest_ready(const OwnerQueue& queue,
                                           const std::string& placement) = 0;
  /// At most 32 of these jobs that pass the filter.
  virtual std::vector<JobRow> ready_heads_within(const OwnerQueue& queue,
                                                 const std::string& placement,
                                                 const HeadFilter& filter) = 0;
  /// Marks queued jobs without a grant as ready once their not_before has passed.
  /// @return their number.
  virtual std::int32_t promote_delayed(std::int64_t now_ms) = 0;
  /// Jobs in a back-off: queued or held, granted before, and not ready yet.
  virtual std::vector<JobRow> delayed_retries() = 0;

  // Attempts.
  virtual RowId insert_attempt(const AttemptRow& row) = 0;
  virtual void update_attempt(const AttemptRow& row) = 0;
  virtual std::optional<AttemptRow> find_attempt(std::string_view uid) = 0;
  virtual std::optional<AttemptRow> attempt(RowId id) = 0;
  virtual std::vector<AttemptRow> open_attempts() = 0;
  /// Appends bytes to the log of an attempt, at its committed length.
  virtual void append_log(const AttemptRow& attempt, std::string_view bytes) = 0;
  /// Length of the part of a log that is in its file.
  virtual std::int64_t folded_log_bytes(RowId attempt) = 0;
  /// Up to `size` bytes of a log from `offset` that are not in its file yet; "" if `offset` is in
  /// the file.
  virtual std::string log_tail(RowId attempt, std::int64_t offset, std::int64_t size) = 0;
  virtual std::vector<AttemptRow> open_attempts_of(const std::string& worker_id) = 0;
  virtual std::vector<AttemptRow> attempts_of_acquire(const std::string& acquire_id) = 0;

  // The fence is unique and increases over the life of the store.
  virtual std::int64_t next_fence() = 0;
  virtual std::int64_t newest_fence() = 0;
  /// After this call, next_fence returns values above `fence`.
  virtual void raise_fence(std::int64_t fence) = 0;

  // History.
  virtual std::int64_t append_event(const EventRow& event) = 0;
  virtual void save_progress(RowId job, const std::string& body, std::int64_t now_ms) = 0;

  // Files.
  /// Size of a blob that the scope holds: the caller sent it, or may see a job with it.
  virtual std::optional<std::int64_t> blob_size(const Scope& scope, std::string_view digest) = 0;
  virtual void insert_artifact(RowId job, const ArtifactRow& artifact) = 0;
  virtual std::optional<CheckpointRow> newest_checkpoint(RowId job) = 0;
  virtual void insert_checkpoint(RowId job, const CheckpointRow& checkpoint) = 0;
  /// Keeps the newest `keep` checkpoints of the job.
  virtual void drop_old_checkpoints(RowId job, std::int32_t keep) = 0;

  // Workers.
  virtual void save_worker(const WorkerRow& worker) = 0;
  /// Every worker that ever registered.
  virtual std::vector<WorkerRow> workers() = 0;
  /// The version of a worker when it registered last; "" if it never did.
  virtual std::string worker_version(const std::string& worker_id) = 0;

  // Measured over stated values. The store keeps the newest kKeptRatios of each quantity of a kind
  // in a pool.
  virtual void add_estimate_ratio(Quantity quantity, const std::string& kind,
                                  const std::string& pool, double ratio) = 0;
  virtual EstimateRatios estimate_ratios_of(Quantity quantity, const std::string& kind,
                                            const std::string& pool) = 0;
  virtual std::vector<EstimateRatios> estimate_ratios() = 0;

  // Orders that keep workers and devices out of service.
  virtual std::vector<ServiceOrder> service_orders() = 0;
  /// Replaces the order about the same worker and device.
  virtual void save_service_order(const ServiceOrder& order) = 0;
  virtual void end_service_order(const std::string& worker_id, const std::string& device_id) = 0;

  // Accounts. The store counts them in the transaction of each change of a job, attempt or blob.
  /// The stored allowance; all values are empty if none was set.
  virtual Allowance allowance_of(const Account& account) = 0;
  /// All stored allowances.
  virtual std::vector<std::pair<Account, Allowance>> allowances() = 0;
  virtual void save_allowance(const Account& account, const Allowance& allowance) = 0;
  /// The jobs, GPUs and reserved time in use; the other values are 0.
  virtual Used jobs_of_account(const Account& account) = 0;
  /// GPU time of the attempts that ended on `first_day`, in days since 1970, or later.
  virtual std::int64_t gpu_ms_of_account(const Account& account, std::int64_t first_day) = 0;
  /// Use of slots from that day on.
  virtual std::vector<DayUse> day_uses(std::int64_t first_day) = 0;
  /// Bytes of the blobs that a principal, or all members of a tenant, hold.
  virtual std::int64_t bytes_of_account(const Account& account) = 0;

  // Stored answers to repeated requests.
  virtual std::optional<RequestRow> find_request(const std::string& request_id) = 0;
  virtual void save_request(const std::string& request_id, const RequestRow& request,
                            std::int64_t expires_ms) = 0;
};

}  // namespace quasi::server
