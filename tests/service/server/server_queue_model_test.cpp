// Tests the queue with random commands against a small model that knows only the invariants. A
// failure prints the seed; QUASI_SEED repeats it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "server/store/check/invariant_check.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

/// The model's state of a job.
struct Belief {
  JobState state = JobState::kQueued;
  std::optional<AttemptKey> holder;        ///< holder of an open attempt
  std::int64_t deadline_ms = 0;            ///< deadline of its lease
  std::optional<AttemptKey> reinstatable;  ///< its lease expired, and there was no other grant
  bool started = false;
  std::int64_t ready_ms = 0;
  bool was_cancelled = false;
  std::int32_t grants = 0;
};

class Model {
 public:
  explicit Model(std::uint64_t seed)
      : random_(seed),
        ids_(seed + 1),
        world_({.files = system_files(), .root = root_.path()}, clock_, ids_,
               {.lease_ttl_ms = 5'000,
                .restart_grace_ms = 0,
                .requeue_delay_ms = 1'000,
                .retry_back_off_ms = 1'000}) {
    for (std::uint64_t i = 0; i < kWorkers; ++i) {
      workers_.push_back(simple_gpu_worker("w_" + std::to_string(i), 1'000 + i, 2));
      world_.apply(workers_.back());
    }
  }

  void step() {
    switch (random_.next() % 12) {
      case 0:
        submit();
        break;
      case 1:
      case 2:
        acquire();
        break;
      case 3:
        start();
        break;
      case 4:
        complete();
        break;
      case 5:
        release();
        break;
      case 6:
        cancel();
        break;
      case 7:
        heartbeat();
        break;
      case 8:
        stale_write();
        break;
      case 9:
        pass_time();
        break;
      case 10:
        hold();
        break;
      case 11:
        let_go();
        break;
    }
    compare();
  }

  /// Rows that contradict an invariant, as sentences.
  std::vector<std::string> faults() { return invariant_faults(world_.engine.database(), 4); }

 private:
  static constexpr std::uint64_t kWorkers = 3;
  std::uint64_t below(std::uint64_t n) { return random_.next() % n; }
  std::int64_t now() const { return clock_.time.monotonic_ms; }

  const std::string* pick(const std::function<bool(const Belief&)>& wanted) {
    std::vector<const std::string*> found;
    for (const auto& [uid, belief] : jobs_)
      if (wanted(belief)) found.push_back(&uid);
    return found.empty() ? nullptr : found[below(found.size())];
  }

  void submit() {
    const std::string request = uuid_of(++requests_);
    const Scope owner = user_scope(static_cast<std::int64_t>(1 + requests_ % 3),
                                   requests_ % 3 == 0 ? "phonons" : "devices");
    const SubmitJobs command{.scope = owner,
                             .request_id = request,
                             .body_sha256 = "b",
                             .jobs = {simple_job("j" + std::to_string(requests_),
                                                 static_cast<std::int32_t>(1 + below(3)))}};
    const auto submitted = world_.apply(command);
    jobs_[submitted.uids.at(0)].ready_ms = now();
    EXPECT_TRUE(world_.apply(command).replayed);  // I7
    SubmitJobs other = command;
    other.body_sha256 = "c";
    EXPECT_THROW(world_.apply(other), Refused);
  }

  void acquire() {
    const RegisterWorker& worker = workers_[below(kWorkers)];
    const auto command = simple_acquire(worker, ++acquires_, 2);
    const auto grants = world_.apply(command).grants;
    std::size_t busy = 0;
    for (const auto& [uid, belief] : jobs_)
      if (belief.holder && belief.holder->worker_id == worker.worker.id) ++busy;
    EXPECT_LE(busy + grants.size(), 2U) << "I6: more attempts than slots";
    for (const Grant& grant : grants) {
      Belief& belief = jobs_.at(grant.job.uid);
      EXPECT_EQ(belief.state, JobState::kQueued);
      EXPECT_FALSE(belief.was_cancelled) << "I12";
      EXPECT_LE(belief.ready_ms, now()) << "granted before its time";
      EXPECT_GT(grant.attempt.fence, newest_fence_) << "I4";
      newest_fence_ = grant.attempt.fence;
      if (belief.reinstatable) stale_.push_back(*belief.reinstatable);
      belief.reinstatable.reset();
      belief.state = JobState::kLeased;
      belief.holder = key_of(grant);
      belief.started = false;
      belief.deadline_ms = now() + 5'000;
      EXPECT_LE(++belief.grants, grant.job.max_attempts + 20) << "I13";
      EXPECT_LE(grant.job.attempts, grant.job.max_attempts) << "I13";
    }
    const auto again = world_.apply(command).grants;  // the reply was lost
    ASSERT_EQ(again.size(), grants.size());
    for (std::size_t i = 0; i < again.size(); ++i)
      EXPECT_EQ(again[i].attempt.fence, grants[i].attempt.fence);
  }

  void start() {
    const std::string* uid = pick([](const Belief& b) { return b.holder.has_value(); });
    if (uid == nullptr) return;
    Belief& belief = jobs_[*uid];
    world_.apply(StartAttempt{*belief.holder});
    belief.started = true;
    if (belief.state == JobState::kLeased) belief.state = JobState::kRunning;
  }

  void end(Belief& belief, JobState state, std::int64_t ready_ms) {
    stale_.push_back(*belief.holder);
    belief.holder.reset();
    belief.state = state;
    belief.ready_ms = ready_ms;
  }

  void complete() {
    const std::string* uid = pick([](const Belief& b) { return b.holder.has_value(); });
    if (uid == nullptr) return;
    Belief& belief = jobs_[*uid];
    CompleteAttempt command;
    command.key = *belief.holder;
    command.report_digest = "report " + std::to_string(++requests_);
    static constexpr FailureReason kReasons[] = {FailureReason::kNumerical, FailureReason::kStorage,
                                                 FailureReason::kChildCrashed};
    const bool fails = below(2) == 0;
    if (fails) {
      command.outcome = AttemptOutcome::kFailed;
      command.failure.reason = kReasons[below(3)];
    }
    if (!fails && belief.state == JobState::kLeased) {
      EXPECT_THROW(world_.apply(command), Refused) << "a success before the start";
      return;
    }
    const JobState after = world_.apply(command).state;
    if (belief.state == JobState::kCancelling)
      EXPECT_EQ(after, JobState::kCancelled) << "I12: a result after the cancel is discarded";
    else if (!fails)
      EXPECT_EQ(after, JobState::kSucceeded);
    else if (command.failure.reason == FailureReason::kNumerical)
      EXPECT_EQ(after, JobState::kFailed);
    else
      EXPECT_TRUE(after == JobState::kQueued || after == JobState::kFailed);
    EXPECT_EQ(world_.apply(command).state, after) << "the repeated report";
    CompleteAttempt other = command;
    other.report_digest = "something else";
    EXPECT_THROW(world_.apply(other), Refused);
    end(belief, after, now() + 800);  // the shortest back-off
  }

  void release() {
    const std::string* uid = pick([](const Belief& b) { return b.holder.has_value(); });
    if (uid == nullptr) return;
    Belief& belief = jobs_[*uid];
    const ReleaseLease command{
        .key = *belief.holder, .reason = ReleaseReason::kDrain, .message = ""};
    const std::int32_t counted =
        world_.engine.store().find_job(Scope::everything(), *uid)->attempts;
    const JobState after = world_.apply(command).state;
    EXPECT_EQ(world_.apply(command).state, after);
    if (belief.state != JobState::kCancelling) {
      EXPECT_EQ(world_.engine.store().find_job(Scope::everything(), *uid)->attempts, counted - 1);
    }
    end(belief, after, now());
  }

  void cancel() {
    const std::string* uid = pick([](const Belief&) { return true; });
    if (uid == nullptr || below(3) != 0) return;
    Belief& belief = jobs_[*uid];
    const auto cancelled =
        world_.apply(CancelJobs{.request_id = {}, .body_sha256 = {}, .uids = {*uid}, .reason = ""});
    if (!is_final(belief.state)) {
      belief.was_cancelled = true;
      belief.state = belief.holder ? JobState::kCancelling : JobState::kCancelled;
      if (belief.reinstatable) stale_.push_back(*belief.reinstatable);
      belief.reinstatable.reset();
    }
    EXPECT_EQ(cancelled.states.at(0), belief.state);
  }

  /// Holds a job, which works for waiting jobs alone. An expired attempt may still come back.
  void hold() {
    const std::string* uid = pick([](const Belief&) { return true; });
    if (uid == nullptr) return;
    Belief& belief = jobs_[*uid];
    const ChangeTurns command{.request_id = {}, .body_sha256 = {}, .uids = {*uid}, .reason = {}};
    if (belief.state != JobState::kQueued && belief.state != JobState::kHeld) {
      EXPECT_THROW(world_.apply(command), Refused);
      return;
    }
    belief.state = JobState::kHeld;
    EXPECT_EQ(world_.apply(command).jobs.at(0).state, JobState::kHeld);
  }

  /// Releases a held job. Its back-off, which goes on while it is held, still counts.
  void let_go() {
    const std::string* uid = pick([](const Belief& b) { return b.state == JobState::kHeld; });
    if (uid == nullptr) return;
    const ChangeTurns command{.request_id = {},
                              .body_sha256 = {},
                              .uids = {*uid},
                              .act = ChangeTurns::Act::kRelease,
                              .reason = {}};
    EXPECT_EQ(world_.apply(command).jobs.at(0).state, JobState::kQueued);
    jobs_[*uid].state = JobState::kQueued;
  }

  void heartbeat() {
    const RegisterWorker& worker = workers_[below(kWorkers)];
    Heartbeat command{.worker_id = worker.worker.id,
                      .incarnation = worker.worker.incarnation,
                      .attempts = {},
                      .devices = {}};
    std::vector<std::string> order;
    for (const auto& [uid, belief] : jobs_) {
      const auto& key = belief.holder ? belief.holder : belief.reinstatable;
      if (!key || key->worker_id != worker.worker.id) continue;
      command.attempts.push_back(
          {.attempt_uid = key->attempt_uid, .fence = key->fence, .progress = "p"});
      order.push_back(uid);
    }
    const auto answer = world_.apply(command);
    std::size_t busy = 0;
    for (const std::string& uid : order) busy += jobs_[uid].holder ? 1 : 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Belief& belief = jobs_[order[i]];
      if (belief.reinstatable && busy >= 2) {  // its slot has been granted since (I6)
        EXPECT_EQ(answer.directives[i], Directive::kFenced);
        continue;
      }
      if (belief.reinstatable) {  // back in time: there was no other grant
        ++busy;
        belief.holder = std::exchange(belief.reinstatable, std::nullopt);
        belief.state = belief.started ? JobState::kRunning : JobState::kLeased;
      }
      belief.deadline_ms = now() + 5'000;
      EXPECT_EQ(answer.directives[i],
                belief.state == JobState::kCancelling ? Directive::kCancel : Directive::kContinue);
    }
  }

  /// I5: a command with an old fence has no effect.
  void stale_write() {
    if (stale_.empty()) return;
    const AttemptKey key = stale_[below(stale_.size())];
    CompleteAttempt report;
    report.key = key;
    report.report_digest = "from the past " + std::to_string(++requests_);
    EXPECT_THROW(world_.apply(report), Refused);
    EXPECT_THROW(world_.apply(StartAttempt{key}), Refused);
    EXPECT_THROW(world_.apply(AppendLog{.key = key, .offset = 0, .data = "x"}), Refused);
    EXPECT_THROW(world_.apply(RecordCheckpoint{.key = key, .checkpoint = {.sequence = 9}}),
                 Refused);
  }

  void pass_time() {
    clock_.advance(static_cast<std::int64_t>(below(3'000)));
    // The wall clock may jump without an effect on leases (I19). It is set back afterwards because
    // of not_before.
    world_.run([](WriteContext& write) { write.queue.tick(write.now); });
    for (auto& [uid, belief] : jobs_) {
      if (!belief.holder || belief.deadline_ms > now()) continue;
      const JobState actual = world_.engine.store().find_job(Scope::everything(), uid)->state;
      if (belief.state == JobState::kCancelling) {
        EXPECT_EQ(actual, JobState::kCancelled);
        end(belief, JobState::kCancelled, 0);
      } else {
        EXPECT_TRUE(actual == JobState::kQueued || actual == JobState::kFailed);
        if (actual == JobState::kQueued)
          belief.reinstatable = belief.holder;
        else
          stale_.push_back(*belief.holder);
        belief.holder.reset();
        belief.state = actual;
        belief.ready_ms = now() + 1'000;
      }
    }
  }

  void compare() {
    for (const auto& [uid, belief] : jobs_) {
      const auto job = world_.engine.store().find_job(Scope::everything(), uid);
      ASSERT_TRUE(job);
      ASSERT_EQ(job->state, belief.state)
          << uid << " is " << name_of(job->state) << ", the model says " << name_of(belief.state);
      ASSERT_EQ(job->open_attempt.has_value(), belief.holder.has_value());
    }
  }

  SeededRandom random_;
  SeededRandom ids_;
  FakeClock clock_;
  quasi::test::TemporaryDirectory root_;
  QueueWorld world_;
  std::vector<RegisterWorker> workers_;
  std::map<std::string, Belief> jobs_;
  std::vector<AttemptKey> stale_;
  std::uint64_t requests_ = 0;
  std::uint64_t acquires_ = 1'000'000;
  std::int64_t newest_fence_ = 0;
};

TEST(QueueModel, RandomCommandsKeepToTheModel) {
  const char* given = std::getenv("QUASI_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + (given != nullptr ? 1 : 20); ++seed) {
    SCOPED_TRACE("QUASI_SEED=" + std::to_string(seed));
    Model model(seed);
    for (int i = 0; i < 500; ++i) {
      model.step();
      if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "at step " << i;
    }
    EXPECT_EQ(model.faults(), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace quasi::server::test
