#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quasi/v1/worker_service.pb.h"
#include "server/queue/job_state.hpp"
#include "server/queue/retry.hpp"
#include "tests/service/simulator/set_plan.hpp"
#include "tests/service/simulator/timeline.hpp"
#include "tests/service/support/queue_world.hpp"

namespace quasi::sim {

using server::AttemptOutcome;
using server::JobState;

/// The limits by which the judge measures, and the server serves.
struct Rules {
  std::int64_t lease_ttl_ms = 8'000;
  std::int64_t restart_grace_ms = 2'000;
  std::int64_t requeue_delay_ms = 3'000;
  std::int64_t tick_ms = 500;  ///< the server looks for expired leases this often
  std::int64_t retry_back_off_ms = 1'000;
  std::int64_t unfinished_jobs_of_user = 15;
  std::int64_t gpus_of_user = 2;
  std::int64_t gpus_of_tenant = 2;
};

/// Compares what happens with the invariants I1 to I17 and I19 of docs/invariants.md. It follows
/// the committed events of the jobs, and knows what callers were told and what engines made. Its
/// rules are its own: it shares no code with the queue. A violation names its invariant and its
/// event.
///
/// It also judges orders of the operator ("orders"), the memory of shared GPUs ("memory"), the time
/// that workers have left ("time"), the limits and stop rules of sets ("sets"), and that workers
/// send no request that is malformed or comes too early ("requests").
class Judge {
 public:
  Judge(Timeline& timeline, const Rules& rules) : timeline_(timeline), rules_(rules) {}

  const Rules& rules() const { return rules_; }
  void report_violation(const std::string& invariant, const std::string& what);
  /// The first violation, or "".
  const std::string& violation() const { return violation_; }

  // The server.
  /// A server has opened the database, with these leases open. After a crash it keeps all that was
  /// told (I1, I9), and no attempt has ended (I16).
  void note_start(server::test::QueueWorld& world);
  void note_stop();
  /// A group was committed: follows its events.
  void follow_commit();
  /// The server has looked for expired leases and for the ends of delays: none is late (I19, I1).
  void check_times();
  /// Checks the whole database. It takes a while.
  void check_database();

  // Workers, as the server hears them. All of these run in the transaction of the call.
  /// The lease of an attempt was prolonged.
  void note_prolonged_lease(std::int64_t fence) {
    deadlines_[fence] = timeline_.now() + rules_.lease_ttl_ms;
  }
  /// A report on an attempt was accepted: it holds its job (I5).
  void check_accepted_call(server::WriteContext& write, const v1::AttemptRef& ref,
                           const char* call);
  /// A checkpoint was recorded: its bytes are there (I11).
  void check_recorded_checkpoint(const std::string& digest);
  /// True if the lease of this attempt was granted and its engine has not started.
  bool is_unstarted(const v1::AttemptRef& ref);
  /// A report of success was refused. A worker sends none before the server knows of the start.
  void check_refused_success(const v1::AttemptRef& ref);
  /// An attempt before a report of its end is applied.
  struct Report {
    std::int64_t fence = 0;
    bool is_first = false;  ///< no report of its end was accepted before
  };
  Report find_reported_attempt(server::WriteContext& write, const v1::AttemptRef& ref);
  /// The report was accepted and its job has this state: it held its job, or is a repeated one.
  void check_accepted_report(server::WriteContext& write, const Report& report, JobState state);
  void note_devices(const std::string& worker, const std::vector<v1::Device>& devices, bool drains,
                    bool is_registration);
  /// A job was granted in answer to this request of a worker.
  void check_grant(const server::AcquireLeases& request, const server::Grant& grant);
  /// An operator took a worker or a device out of service, or put it back.
  void note_order(const server::ServiceOrder& order, bool end);
  void note_checkpoint(const v1::AttemptRef& ref, std::int64_t sequence);
  void note_log(const std::string& attempt, const std::string& bytes, std::int64_t offset,
                std::int64_t length);

  // Engines.
  /// An engine wrote a line of its log.
  void note_written_line(const std::string& attempt, const std::string& line) {
    written_[attempt] += line + "\n";
  }
  /// @param figure  in the summary of the result; -1 if it has none
  void note_result(std::uint64_t fence, const std::string& digest, std::int64_t figure) {
    made_[fence].insert(digest);
    figures_[fence] = figure;
  }
  /// An engine of this job crashed by a fault that the story made.
  void note_engine_crash(const std::string& uid);
  /// An answer to a report of success reached its worker.
  void check_success_answer(const v1::AttemptRef& ref, JobState state);

  // Clients.
  struct Submission {
    std::int64_t owner = 0;
    std::size_t jobs = 0;
  };
  /// A submission was recorded in the journal before it was sent.
  void note_submission(const std::string& request, const Submission& submission);
  /// @param was_acknowledged  the client knew the answer when it sent the refused call
  void note_refusal(const std::string& request, bool was_acknowledged);
  bool is_acknowledged(const std::string& request) const { return answers_.contains(request); }
  /// @param set  the id of the set of the jobs; "" if they are none
  void note_submission_answer(const std::string& request, const std::vector<std::string>& uids,
                              const std::string& set);
  /// The owner of a job or of a set, with this id, sends its cancel.
  void note_cancel(const std::string& uid) { cancels_.insert(uid); }
  void note_cancel_answer(const std::string& uid, JobState state);
  /// Call this when the server has acknowledged the cancel of a set. Each of its jobs must then
  /// have ended, or be in the state CANCELLING.
  /// @param uid  the id of the set
  void note_set_cancel_answer(const std::string& uid);

  /// All faults have stopped and all work is done: judges the whole story.
  void judge_end();
  /// The jobs that have not ended.
  std::vector<std::string> unfinished() const;
  bool has_unfinished() const;
  bool has_orders() const { return !orders_.empty(); }
  /// The jobs that workers have.
  std::vector<std::string> uids_with_workers() const;
  std::size_t jobs() const { return jobs_.size(); }
  std::map<std::string, int> counts() const { return counts_; }

 private:
  /// A change of state of a job, as the table of events has it.
  struct Event {
    std::int64_t seq = 0, job = 0, job_seq = 0, fence = 0;
    std::optional<JobState> from;
    JobState to = JobState::kQueued;
    server::FailureReason reason = server::FailureReason::kNone;
    bool reinstated = false;
    /// Reads a row of select_changes().
    static Event read(const server::Statement& row);
    std::string essence() const;
  };
  struct Open {
    std::int64_t job = 0;
    std::string worker;
    std::vector<std::string> devices;
    std::int64_t reserved = 0;  ///< bytes on each of its GPUs
  };
  struct Job {
    std::string uid, name, tenant, action;
    std::int64_t owner = 0;
    std::int32_t max_attempts = 0;
    v1::JobSpec spec;
    JobState state = JobState::kQueued;
    std::int64_t job_seq = 0, fence = 0;
    std::vector<std::pair<std::int64_t, server::Condition>> waits_for;
    std::optional<JobState> cancelled;  ///< what the caller was told
    std::set<std::string> artifacts;
    std::int64_t recorded_checkpoint = 0;
    std::int64_t winner = 0;
    bool was_crashed = false;
    std::int32_t grants = 0;
    std::int64_t changed_ms = 0;  ///< time of its newest event
    std::int64_t set = 0;         ///< row of its set; 0 if it is in none
    std::int64_t figure = -1;     ///< of its result; -1 if it has none
  };
  /// A set of jobs, with the counts that its rules compare.
  struct Set {
    std::string uid;
    SetPlan plan;
    std::vector<std::int64_t> jobs;
    std::int64_t failures = 0, met = 0;
    bool is_stopped = false;
    std::set<std::int64_t> with_workers;  ///< jobs that ran when it stopped, and go on
  };
  struct Device {
    v1::DeviceState state = v1::DEVICE_STATE_READY;
    std::int64_t slots = 0, memory = 0;
    bool cuda = false;
  };
  struct Machine {
    std::map<std::string, Device> devices;
    bool drains = false;
  };
  /// Orders of the operator by worker and device: whether running jobs leave, and the reason.
  using Orders = std::map<std::pair<std::string, std::string>, std::pair<bool, std::string>>;

  server::Statement& sql(std::string_view text) { return statements_->get(text); }
  /// Selects the changes of state in a range of `seq` that begins or ends at the newest event seen.
  server::Statement& select_changes(const std::string& range);
  /// The first column of the first row; 0 if there is none.
  std::int64_t number(const char* text);
  void expect_zero(const std::string& invariant, const char* what, const char* text);
  void follow(const Event& event);
  void follow_birth(Job& job, const Event& event);
  void follow_grant(Job& job, const Event& event);
  void follow_reinstatement(Job& job, const Event& event);
  void follow_end_of_attempt(Job& job, const Event& event);
  /// A job whose worker was lost or gave it back fails only after its last attempt.
  void check_attempts_used_up(const Job& job, AttemptOutcome outcome);
  void follow_success(Job& job, const Event& event);
  void follow_failure(const Job& job, const Event& event);
  void occupy(std::int64_t fence, std::int64_t job);
  void check_slots();
  void check_memory(std::int64_t fence);
  void check_orders();
  /// Time limit of a job times the correction of its kind: the value below which 95 of 100 measured
  /// ratios lie, from the stored ratios.
  std::int64_t expected_time_ms(const server::JobRow& job);
  bool is_closed(const std::string& worker, const std::string& device) const;
  /// True if an operator orders the jobs of the worker to leave, or did so until a moment ago.
  bool is_evicting(const std::string& worker) const;
  void check_quotas();
  void follow_birth_in_set(Job& job, std::int64_t set, std::int64_t row);
  /// Counts the end of a job in its set, which may stop the set.
  void count_in_set(const Job& job, const Event& event);
  /// A job is cancelled because somebody wants it or because its set has just stopped.
  void check_cancel(const Job& job, const Event& event);
  /// No more jobs of a set run or wait for a worker than its limit, and no job of a set that has
  /// just stopped waits.
  void check_sets();
  /// The rows of the sets say what the judge counted.
  void check_stored_sets();
  /// No job waits longer than its delay after an attempt.
  void check_back_offs();
  void check_files();
  void check_told();
  void check_logs();
  std::set<std::string> artifacts_of(std::int64_t job);
  void report_violation(const std::string& invariant, const Job& job, const std::string& what);

  Timeline& timeline_;
  Rules rules_;
  std::string violation_;
  server::test::QueueWorld* world_ = nullptr;
  std::unique_ptr<server::StatementCache> statements_;
  std::map<std::int64_t, Job> jobs_;  ///< by the row of the database
  std::map<std::string, std::int64_t> row_of_uid_;
  std::map<std::int64_t, std::string> events_;  ///< essence of every event, by its number
  std::map<std::int64_t, Open> open_;           ///< open attempts by fence
  std::map<std::int64_t, std::int64_t> deadlines_;
  std::map<std::string, Machine> machines_;
  Orders orders_;                                          ///< as of the newest call
  Orders committed_orders_;                                ///< as of the newest commit
  std::map<std::string, std::int64_t> orders_changed_ms_;  ///< by worker
  std::map<std::string, std::int64_t> job_of_attempt_;     ///< by id of a granted attempt
  std::map<std::uint64_t, std::set<std::string>> made_;
  std::map<std::uint64_t, std::int64_t> figures_;  ///< by fence
  std::map<std::int64_t, Set> sets_;               ///< by the row of the database
  std::set<std::int64_t> stopped_now_;             ///< sets that the commit being followed stopped
  std::set<std::string> cancels_;                  ///< jobs and sets whose cancel was sent
  std::map<std::string, std::string> logs_;        ///< acknowledged bytes by attempt
  std::map<std::string, std::string> written_;     ///< bytes that its engine wrote, by attempt
  std::map<std::string, Submission> recorded_;
  std::map<std::string, std::vector<std::string>> answers_;
  std::set<std::string> refused_;
  std::set<std::int64_t> granted_;
  std::int64_t newest_fence_ = 0;
  std::int64_t newest_event_ = 0;
  std::int64_t opened_at_ms_ = 0;
  std::map<std::string, int> counts_;  ///< of things that happened
};

}  // namespace quasi::sim
