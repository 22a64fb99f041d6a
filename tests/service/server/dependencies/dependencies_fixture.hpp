#pragma once

#include "server/store/check/invariant_check.hpp"
#include "tests/service/server/results/results_fixture.hpp"

namespace quasi::server::test {

/// A queue with one worker, and jobs that wait for others.
class DependenciesTest : public ResultsTest {
 protected:
  static JobReference uid(const std::string& uid) { return {.uid = uid, .index = 0}; }
  static JobReference place(std::size_t index) { return {.uid = {}, .index = index}; }

  /// A job that shares no results and waits for others.
  static NewJob after(const std::vector<JobReference>& jobs,
                      Condition condition = Condition::kSuccess) {
    NewJob job = simple_job("after");
    for (const JobReference& reference : jobs)
      job.dependencies.push_back({.job = reference, .condition = condition, .field = "depends_on"});
    return job;
  }
  /// A job that takes an artefact of another one, and may take the result of an equal job.
  static NewJob taking(const JobReference& from, const std::string& artifact = "result.h5") {
    NewJob job = simple_job("taking");
    job.row.cache = CachePolicy::kUse;
    job.artifact_inputs = {
        {.slot = "deck/eps.h5", .job = from, .artifact = artifact, .field = "inputs[0].from"}};
    return job;
  }

  std::vector<std::string> submit_all(const std::vector<NewJob>& jobs,
                                      const Scope& scope = user_scope(1, "phonons")) {
    return world_
        .apply(SubmitJobs{
            .scope = scope, .request_id = uuid_of(++calls_), .body_sha256 = "b", .jobs = jobs})
        .uids;
  }
  std::string add(const NewJob& job) { return submit_all({job}).at(0); }
  JobState state(const std::string& uid) { return row(uid).state; }
  void cancel(const std::vector<std::string>& uids) {
    world_.apply(CancelJobs{.scope = Scope::everything(),
                            .request_id = "",
                            .body_sha256 = "",
                            .uids = uids,
                            .reason = ""});
  }
  JobState change(const std::string& uid, ChangeTurns::Act act) {
    return world_
        .apply(ChangeTurns{.scope = Scope::everything(),
                           .request_id = "",
                           .body_sha256 = "",
                           .uids = {uid},
                           .act = act,
                           .reason = ""})
        .jobs.at(0)
        .state;
  }
  Explanation why(const std::string& uid, const Scope& scope = Scope::everything()) {
    Explanation explanation;
    world_.run(
        [&](WriteContext& write) { explanation = write.queue.explain(scope, uid, write.now); });
    return explanation;
  }
  /// The refusal of a submission: its reason and message.
  std::string refusal(const std::vector<NewJob>& jobs,
                      const Scope& scope = user_scope(1, "phonons")) {
    try {
      submit_all(jobs, scope);
    } catch (const Refused& refused) {
      return refused.reason + ": " + refused.what();
    }
    return "";
  }
  void TearDown() override {
    EXPECT_EQ(invariant_faults(world_.engine.database(), 4), std::vector<std::string>());
  }
};

}  // namespace quasi::server::test
