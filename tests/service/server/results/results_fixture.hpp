#pragma once

#include <gtest/gtest.h>

#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {

inline const std::string kAction(64, 'a');

/// A queue with one worker that has many slots, and jobs of one action.
class ResultsTest : public testing::Test {
 protected:
  ResultsTest() { world_.apply(worker_); }

  static QueueOptions options() {
    QueueOptions options;
    options.results.version = "test";
    options.results.action_of = [](const std::string& spec, const std::vector<JobInput>& inputs) {
      std::string text = spec;
      for (const JobInput& input : inputs) text += "/" + input.slot + "=" + input.digest;
      return wire::sha256_hex(text);
    };
    return options;
  }
  static NewJob job(CachePolicy cache = CachePolicy::kUse, const std::string& action = kAction) {
    NewJob job = simple_job("job");
    job.row.action = action;
    job.row.cache = cache;
    return job;
  }
  Submitted submit(const NewJob& job, const Scope& scope = user_scope(1, "phonons")) {
    return world_.apply(SubmitJobs{
        .scope = scope, .request_id = uuid_of(++calls_), .body_sha256 = "b", .jobs = {job}});
  }
  /// Grants and starts the job at the head of the queue; nothing if there is none.
  std::optional<Grant> start() {
    const Acquired acquired = world_.apply(simple_acquire(worker_, ++calls_, 1));
    if (acquired.grants.empty()) return std::nullopt;
    world_.apply(StartAttempt{key_of(acquired.grants[0])});
    return acquired.grants[0];
  }
  /// Runs the job at the head of the queue to this end.
  void finish(const std::string& result, AttemptOutcome outcome = AttemptOutcome::kSucceeded) {
    end(start().value(), result, outcome);
  }
  void end(const Grant& grant, const std::string& result,
           AttemptOutcome outcome = AttemptOutcome::kSucceeded) {
    CompleteAttempt report{.key = key_of(grant),
                           .outcome = outcome,
                           .artifacts = {},
                           .summary_json = "{}",
                           .failure = {},
                           .usage = {},
                           .report_digest = uuid_of(++calls_)};
    if (outcome == AttemptOutcome::kSucceeded) {
      report.summary_json = "{\"of\": \"" + result + "\"}";
      report.artifacts = {{.name = "result.h5",
                           .digest = world_.put_blob(result),
                           .size_bytes = static_cast<std::int64_t>(result.size()),
                           .media_type = "application/x-hdf5"}};
    } else {
      report.failure = {.reason = FailureReason::kInvalidInput, .message = "no"};
    }
    world_.apply(report);
  }
  std::string computed(const std::string& result, CachePolicy cache = CachePolicy::kUse) {
    const std::string uid = submit(job(cache)).uids.at(0);
    finish(result);
    return uid;
  }
  JobRow row(const std::string& uid) {
    std::optional<JobRow> found;
    world_.run(
        [&](WriteContext& write) { found = write.store.find_job(Scope::everything(), uid); });
    return found.value();
  }
  std::string text(const std::string& sql, const std::string& uid) {
    Statement statement(world_.engine.database(), sql);
    Rows rows(statement.bind(uid));
    std::string found;
    while (rows.next()) found += rows->text(0) + " ";
    return found;
  }
  std::string digest_of(const std::string& uid) {
    return text("SELECT digest FROM artifacts a JOIN jobs j ON j.id=a.job_id WHERE j.uid=?", uid);
  }
  static std::string digest(const std::string& result) { return wire::sha256_hex(result) + " "; }
  bool is_taken(const Submitted& submitted) { return !submitted.reused.empty(); }
  void erase(const std::string& uid) {
    world_.apply(DeleteJobs{.scope = user_scope(1, "phonons"),
                            .request_id = "",
                            .body_sha256 = "",
                            .uids = {uid},
                            .reason = ""});
  }

  quasi::test::TemporaryDirectory root_;
  FakeClock clock_;
  SeededRandom random_{1};
  QueueWorld world_{ServerDisk{.files = system_files(), .root = root_.path()}, clock_, random_,
                    options()};
  RegisterWorker worker_ = simple_worker("w_1", 1, 1'000);
  std::uint64_t calls_ = 100;
};

/// The same queue with the changes that people and time make to equal jobs.
class EqualJobs : public ResultsTest {
 protected:
  std::string add(CachePolicy cache = CachePolicy::kUse, std::int64_t owner = 1,
                  const std::string& tenant = "phonons") {
    return submit(job(cache), user_scope(owner, tenant)).uids.at(0);
  }
  JobState state(const std::string& uid) { return row(uid).state; }
  void cancel(const std::string& uid) {
    world_.apply(CancelJobs{.scope = Scope::everything(),
                            .request_id = "",
                            .body_sha256 = "",
                            .uids = {uid},
                            .reason = ""});
  }
  TurnsChanged change(const std::string& uid, ChangeTurns::Act act, std::int32_t priority = 0) {
    return world_.apply(ChangeTurns{.scope = Scope::everything(),
                                    .request_id = "",
                                    .body_sha256 = "",
                                    .uids = {uid},
                                    .act = act,
                                    .reason = "",
                                    .priority = priority,
                                    .may_raise = true});
  }
  /// Changes the turn of a job that has not ended, or cancels it, by a number below 12.
  void disturb(const std::string& uid, std::uint64_t number) {
    using Act = ChangeTurns::Act;
    if (number % 4 == 0)
      change(uid, Act::kReprioritise, static_cast<std::int32_t>(number / 4) - 1);
    else if (number % 4 == 1 && !row(uid).open_attempt)
      change(uid, Act::kHold);
    else if (number % 4 == 2 && state(uid) == JobState::kHeld)
      change(uid, Act::kRelease);
    else
      cancel(uid);
  }
  /// Adds a job with a time limit of its own.
  std::string add_limited(std::int64_t max_runtime_ms) {
    NewJob limited = job();
    limited.row.max_runtime_ms = max_runtime_ms;
    return submit(limited).uids.at(0);
  }
  void tick() {
    world_.run([](WriteContext& write) { write.queue.tick(write.now); });
  }
  std::size_t count(const std::string& states) {
    return std::stoul(
        text("SELECT count(*) FROM jobs WHERE state IN (" + states + ") AND action=?", kAction));
  }
};

}  // namespace quasi::server::test
