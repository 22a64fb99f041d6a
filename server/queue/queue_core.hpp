#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/queue/clock.hpp"
#include "server/queue/commands.hpp"
#include "server/queue/fleet.hpp"
#include "server/queue/ids.hpp"
#include "server/queue/leases.hpp"
#include "server/queue/log_files.hpp"
#include "server/queue/results/result_cache.hpp"
#include "server/queue/store.hpp"
#include "server/queue/turns/choice.hpp"
#include "server/queue/turns/explanation.hpp"

namespace quasi::server {

struct QueueOptions {
  std::int64_t lease_ttl_ms = 60'000;
  std::int64_t restart_grace_ms = 30'000;  ///< added to a full TTL for leases open at start
  std::int64_t requeue_delay_ms = 30'000;  ///< after a lease expired
  std::int64_t retry_back_off_ms =
      30'000;  ///< after the first failed attempt; it doubles with each
  std::int64_t default_max_runtime_ms = 24 * 3'600'000;
  std::int64_t request_ttl_ms = 7 * 86'400'000LL;
  QuotaDefaults quotas;
  std::int64_t fair_share_half_life_ms = 7 * 86'400'000LL;
  ResultCacheOptions results;
};

/// Begin here: server/queue holds all rules on jobs. This class applies the commands submit, grant,
/// start, report, cancel and expire.
///
/// It has no threads, no gRPC and no clock of its own. Every command receives the moment at which
/// it happens and works on a Store inside the caller's transaction. A command either takes effect
/// as a whole or throws Refused. After any exception the caller rolls back its savepoint. State
/// that lives only in memory (lease deadlines, the fleet) changes after the last call that may
/// throw. If a commit fails as a whole, `recover` rebuilds that state. One caller at a time.
class QueueCore {
 public:
  QueueCore(Store& store, LogFiles& logs, RandomSource& random, const QueueOptions& options);

  /// Must be called once after the store was opened. Every open lease gets a full TTL and the
  /// grace.
  void recover(Now now);

  // Commands of users.
  Submitted apply(const SubmitJobs& command, Now now);
  Cancelled apply(const CancelJobs& command, Now now);
  Deleted apply(const DeleteJobs& command, Now now);
  TurnsChanged apply(const ChangeTurns& command, Now now);
  void apply(const SetAllowance& command, Now now);
  ServiceOrdered apply(const OrderService& command, Now now);
  Preempted apply(const PreemptJobs& command, Now now);
  /// The allowance and the use of an account at present.
  AccountView account(const Account& account, Now now);
  /// Refuses bytes for which the caller or their tenant has no room.
  void require_room_for_bytes(const Scope& scope, std::int64_t bytes);
  /// Explains why a job waits. It changes nothing.
  /// @throws Refused NOT_FOUND / JOB
  Explanation explain(const Scope& scope, const std::string& uid, Now now);
  /// Bytes of a log, from its file and from the store.
  std::string read_log(const AttemptRow& attempt, std::int64_t offset, std::int64_t size);

  // Commands of workers.
  Registered apply(const RegisterWorker& command, Now now);
  Acquired apply(const AcquireLeases& command, Now now);
  HeartbeatAnswer apply(const Heartbeat& command, Now now);
  void apply(const StartAttempt& command, Now now);
  LogAppended apply(const AppendLog& command, Now now);
  void apply(const RecordCheckpoint& command, Now now);
  JobAfter apply(const CompleteAttempt& command, Now now);
  JobAfter apply(const ReleaseLease& command, Now now);

  /// Expires leases and wakes delayed jobs; called a few times a second.
  /// @return true if jobs became ready.
  bool tick(Now now);

  std::vector<WorkerStatus> fleet(Now now) const;
  /// Tells if jobs became ready since the last call.
  bool take_ready_flag();

 private:
  struct Held {
    JobRow job;
    AttemptRow attempt;
  };

  /// The job and attempt that `key` names, if the attempt still has the right to act. An expired
  /// lease is reinstated first if its job was not granted again.
  /// @throws Refused ABORTED / FENCED.
  Held require_current(const AttemptKey& key, Now now);
  std::optional<Held> find_current(const AttemptKey& key, Now now);
  AttemptRow find_attempt_of(const AttemptKey& key);
  /// Says which order of an operator lets the attempt leave its worker; "" if it may go on.
  std::string order_to_leave(const JobRow& job, const AttemptRow& attempt, Now now) const;
  Directive directive_for(const Held& held, Now now);
  /// Learns from a job that took `ratio` times what it stated.
  void learn(Quantity quantity, const JobRow& job, double ratio);
  /// Learns from the memory and the time of a job that has succeeded.
  void learn_from(const JobRow& job, const AttemptRow& attempt);
  /// Notes the memory that an attempt was measured to hold on a GPU.
  void note_memory(Held& held, std::int64_t gpu_bytes);
  [[noreturn]] void throw_fenced(const AttemptKey& key);

  TurnRules turn_rules(Now now);
  void refresh_shares(Now now);
  std::optional<Grant> grant_one(const AcquireLeases& command, std::vector<UsableSlot>& slots,
                                 Now now);
  Grant existing_grant(const AttemptRow& attempt);

  struct Note {
    const AttemptRow* attempt = nullptr;
    std::string message;
    FailureInfo failure;
    bool reinstated = false;
  };
  /// Moves the job to a new state, writes the event, and lets the jobs go on that waited.
  void move(JobRow& job, JobEvent event, const Note& note, Now now);
  /// Moves the job to a new state and writes the event. No other function changes a state.
  void change_state(JobRow& job, JobEvent event, const Note& note, Now now);
  // Equal jobs (docs/reference/cache.md).
  static constexpr char kTookResult[] = "took the result of an equal job";
  static constexpr char kWaitsForEqual[] = "waits for an equal job, whose result it takes";
  /// Ends the job with the result of an equal one. The jobs that waited for it go on.
  void take_result(JobRow& job, RowId source, Now now);
  /// The same, but the caller lets the jobs go on.
  void give_result(JobRow& job, RowId source, Now now);
  /// Lets a job whose turn has come take a result, or wait for one. @return false: it is to be run
  bool needs_no_run(JobRow& job, Now now);
  /// Gives a kept result to the jobs that wait for one of this job's action, or lets those be
  /// granted that have nothing to wait for any more. It looks at the first blocked jobs after
  /// `after`; ticks go on with the others. @return the number of jobs that it looked at
  std::size_t settle_equals(const JobRow& job, RowId after, Now now);
  void settle_further_equals(Now now);
  /// Names the equal jobs that a blocked one waits for.
  void explain_equals(const Scope& scope, Explanation& explanation);
  // Jobs that wait for others (server/queue/dependencies).
  static constexpr char kDependenciesMet[] = "the jobs for which it waited have ended";
  static constexpr char kSetHasRoom[] = "another job of its set has ended or is held";
  /// A job has ended or is held. The jobs go on that waited for that, and those that wait for them.
  void settle(const JobRow& left, Now now);
  /// Tells the jobs that wait for one that it has ended. Those that end by it join `left`.
  void settle_dependents(const JobRow& ended, std::vector<JobRow>& left, Now now);
  /// Starts or cancels the jobs of a set that wait. Those that end by it join `left`.
  /// Applies the limits and rules of the set of a job that changed.
  void settle_set(const JobRow& changed, std::vector<JobRow>& left, Now now);
  /// Says why the set of a job that changed stops, as a sentence; "" if it goes on.
  std::string reason_to_stop(const JobSetRow& set, const JobRow& job);
  /// Counts a job that succeeded for the stop rules of its set. @return as reason_to_stop()
  std::string apply_stop_rules(const JobSetRow& set, const JobRow& job);
  void stop_set(const JobSetRow& set, const std::string& why, std::vector<JobRow>& left, Now now);
  bool is_full(const std::optional<RowId>& set_id);
  /// Writes the inputs that `source` has made for the job. @return what is missing; "" if nothing
  /// is
  std::string take_inputs(const JobRow& job, const JobRow& source);
  void fail_by_dependency(JobRow& job, const std::string& fault, Now now);
  /// The job waits for one job less.
  void end_wait_for_one(JobRow& job, Now now);
  /// Queues a job whose inputs are known, or lets it take a result or wait for its set.
  void queue_or_take(JobRow& job, const char* why, Now now);
  std::vector<RowId> jobs_to_cancel(const CancelJobs& command);
  /// Inserts a set, and enters it into its jobs. @return its uid
  std::string insert_set(const JobSetRow& given, std::vector<NewJob>& jobs, Now now);
  /// Sets id, state and times of a new job, and inserts it with its first event.
  void insert(NewJob& job, Now now);
  void close(AttemptRow& attempt, AttemptOutcome outcome, JobState end_state, Now now);
  void hold(JobRow& job, const std::string& reason, Now now);
  void release(JobRow& job, const std::string& reason, Now now);
  void reprioritise(JobRow& job, const ChangeTurns& command, Now now);
  void set_not_before(JobRow& job, std::int64_t delay_ms, Now now);
  void end_back_offs(Now now);
  /// False if other attempts occupy its devices by now, because a slot never carries two attempts
  /// (I6).
  bool has_room_for(const AttemptRow& attempt);
  void reinstate(Held& held, Now now);
  void give_back_count(Held& held);

  JobState end_failed(Held& held, AttemptOutcome outcome, const FailureInfo& failure, Now now);
  JobState end_released(Held& held, ReleaseReason reason, const std::string& message, Now now);
  JobState end_cancelled(Held& held, AttemptOutcome outcome, Now now);
  EventRow detail(const Held& held, EventType type, Now now) const;
  bool detail_due(RowId job, EventType type, Now now);

  Store& store_;
  LogFiles& logs_;
  RandomSource& random_;
  QueueOptions options_;
  Leases leases_;
  std::map<std::int64_t, std::string> attempt_of_fence_;
  Fleet fleet_;
  FairShares shares_;
  Ageing ageing_;
  std::map<std::pair<RowId, EventType>, std::int64_t> last_detail_ms_;  ///< monotonic clock
  /// Ends of back-offs on the monotonic clock, because the wall clock may have been wrong when one
  /// began.
  std::map<RowId, std::int64_t> retry_at_ms_;
  /// Equal jobs that a tick looks at, from an id on.
  struct Unsettled {
    RowId job = 0;
    RowId after = 0;
  };
  std::deque<Unsettled> unsettled_;
  std::int64_t shares_refreshed_ms_ = 0;  ///< monotonic
  /// Attempts that were told to write a checkpoint because their worker leaves service.
  std::set<std::int64_t> told_to_checkpoint_;
  bool became_ready_ = false;
};

}  // namespace quasi::server
