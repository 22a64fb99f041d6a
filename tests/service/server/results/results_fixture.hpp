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

}  // namespace quasi::server::test
