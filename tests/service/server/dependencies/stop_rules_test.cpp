// Tests the stop rules of sweeps: a figure of the results of some jobs cancels the jobs that wait.

#include <gtest/gtest.h>

#include "server/store/check/invariant_check.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

using wire::Comparison;

class StopRules : public testing::Test {
 protected:
  StopRules() { open(); }
  void TearDown() override {
    EXPECT_EQ(invariant_faults(world_->engine.database(), 4), std::vector<std::string>());
  }

  /// Starts the server anew on the same database.
  void open() {
    world_.reset();
    QueueOptions options;
    options.results.version = "test";
    world_ =
        std::make_unique<QueueWorld>(ServerDisk{.files = system_files(),
                                                .root = root_.path().string(),
                                                .database = (root_.path() / "quasi.db").string()},
                                     clock_, random_, options);
    world_->apply(worker_);
  }
  static StopRuleRow rule(const std::string& figure, Comparison comparison, double value,
                          std::int64_t jobs = 1) {
    return {
        .condition = {.figure = figure, .comparison = comparison, .value = value, .jobs = jobs}};
  }
  static std::vector<NewJob> plain(std::size_t n) {
    std::vector<NewJob> jobs;
    for (std::size_t i = 0; i < n; ++i) jobs.push_back(simple_job("j" + std::to_string(i)));
    return jobs;
  }
  Submitted sweep(std::vector<NewJob> jobs, std::vector<StopRuleRow> rules,
                  std::int64_t max_concurrent = 0) {
    JobSetRow set;
    set.name = "sweep";
    set.max_concurrent = max_concurrent;
    set.stop_rules = std::move(rules);
    return world_->apply(SubmitJobs{.scope = user_scope(1, "phonons"),
                                    .request_id = uuid_of(++calls_),
                                    .body_sha256 = "b",
                                    .jobs = std::move(jobs),
                                    .set = set});
  }
  Grant start() {
    const Acquired acquired = world_->apply(simple_acquire(worker_, ++calls_, 1));
    world_->apply(StartAttempt{key_of(acquired.grants.at(0))});
    return acquired.grants.at(0);
  }
  /// Ends a job with the summary of its result.
  void end(const Grant& grant, const std::string& summary) {
    world_->apply(CompleteAttempt{
        .key = key_of(grant), .summary_json = summary, .report_digest = uuid_of(++calls_)});
  }
  void finish(const std::string& summary) { end(start(), summary); }
  JobRow row(const std::string& uid) {
    return *world_->engine.store().find_job(Scope::everything(), uid);
  }
  std::vector<JobState> states(const std::vector<std::string>& uids) {
    std::vector<JobState> found;
    for (const std::string& uid : uids) found.push_back(row(uid).state);
    return found;
  }
  std::string why(const std::string& uid) {
    std::string message;
    world_->run([&](WriteContext& write) {
      message = write.queue.explain(Scope::everything(), uid, write.now).message;
    });
    return message;
  }
  std::vector<StopRuleRow> rules_of(const std::string& job) {
    return world_->engine.store().stop_rules_of(*row(job).set_id);
  }

  static constexpr JobState kRan = JobState::kSucceeded, kRuns = JobState::kRunning,
                            kWaits = JobState::kQueued, kGone = JobState::kCancelled;
  quasi::test::TemporaryDirectory root_;
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<QueueWorld> world_;
  RegisterWorker worker_ = simple_worker("w_1", 1, 1'000);
  std::uint64_t calls_ = 100;
};

// A job whose figure is beyond the value cancels the jobs that wait. A job that runs goes on, and
// each cancelled job says why.
TEST_F(StopRules, AFigureStopsTheOthers) {
  const auto uids = sweep(plain(5), {rule("gap_ev", Comparison::kAbove, 1.1)}).uids;
  finish(R"({"gap_ev": 1.0})");
  EXPECT_EQ(states(uids), (std::vector{kRan, kWaits, kWaits, kWaits, kWaits}));
  const Grant second = start(), third = start();
  end(second, R"({"summary": {"gap_ev": 1.25}, "seconds": 7})");
  EXPECT_EQ(states(uids), (std::vector{kRan, kRan, kRuns, kGone, kGone}));
  EXPECT_EQ(why(uids[4]), "it was cancelled: its set stopped, because gap_ev > 1.1: 1.25 in job " +
                              uids[1] + " (j1)");
  end(third, R"({"gap_ev": 1.0})");
  EXPECT_EQ(row(uids[2]).state, kRan);
  EXPECT_EQ(rules_of(uids[0]).at(0).met, 1);
}

// The count of jobs that met a rule outlives the server.
TEST_F(StopRules, TheCountOutlivesARestart) {
  const auto uids = sweep(plain(5), {rule("kappa.xx", Comparison::kBelow, 50, 2)}, 1).uids;
  const std::string low = R"({"kappa": [[47.5, 0, 0], [0, 90, 0], [0, 0, 90]]})";
  finish(low);
  finish(R"({"kappa": [[51, 0, 0], [0, 1, 0], [0, 0, 1]]})");
  open();
  EXPECT_EQ(rules_of(uids[0]).at(0).met, 1);
  EXPECT_EQ(row(uids[2]).state, kWaits);
  finish(low);
  EXPECT_EQ(states(uids), (std::vector{kRan, kRan, kRan, kGone, kGone}));
  EXPECT_NE(why(uids[3]).find("because kappa.xx < 50 in 2 jobs: 47.5 in job " + uids[2]),
            std::string::npos)
      << why(uids[3]);
  open();
  EXPECT_EQ(row(uids[4]).state, kGone);
}

// A result without the figure meets no rule. It is counted, so that a wrong name is seen.
TEST_F(StopRules, AResultWithoutTheFigureIsCounted) {
  const auto uids =
      sweep(plain(4), {rule("kapa", Comparison::kAbove, 0), rule("kappa", Comparison::kAbove, 100)})
          .uids;
  finish(R"({"kappa": 90})");
  finish(R"({"kapa": "text", "kappa": 90})");
  finish("no JSON");
  EXPECT_EQ(row(uids[3]).state, kWaits);
  const auto rules = rules_of(uids[0]);
  EXPECT_EQ(rules.at(0).lacking, 3);
  EXPECT_EQ(rules.at(0).met, 0);
  EXPECT_EQ(rules.at(1).lacking, 1);
}

// Each comparison at its value and on both sides of it.
TEST_F(StopRules, ComparisonsAreThoseOfTheirSigns) {
  const std::vector<std::pair<Comparison, std::vector<bool>>> expected = {
      {Comparison::kBelow, {true, false, false}},
      {Comparison::kAtMost, {true, true, false}},
      {Comparison::kAbove, {false, false, true}},
      {Comparison::kAtLeast, {false, true, true}}};
  for (const auto& [comparison, stops] : expected)
    for (std::size_t i = 0; i < 3; ++i) {
      const auto uids = sweep(plain(2), {rule("x", comparison, 2.0)}).uids;
      const Grant first = start();
      const Grant other = start();
      end(first, R"({"x": )" + std::to_string(i + 1) + "}");
      EXPECT_EQ(rules_of(uids[0]).at(0).met, stops[i] ? 1 : 0)
          << wire::sign_of(comparison) << " " << i + 1;
      end(other, "{}");
    }
}

// Results that are there already count, at the submission and when they are taken later.
TEST_F(StopRules, TakenResultsCount) {
  const auto equal = [](char c) {
    NewJob job = simple_job(std::string("job ") + c);
    job.row.action = std::string(64, c);
    job.row.cache = CachePolicy::kUse;
    return job;
  };
  world_->apply(SubmitJobs{.scope = user_scope(1, "phonons"),
                           .request_id = uuid_of(++calls_),
                           .body_sha256 = "b",
                           .jobs = {equal('a')}});
  finish(R"({"x": 3})");
  const auto uids =
      sweep({equal('b'), equal('a'), equal('c')}, {rule("x", Comparison::kAtLeast, 3)}).uids;
  EXPECT_EQ(states(uids), (std::vector{kGone, kRan, kGone}));
  EXPECT_EQ(rules_of(uids[0]).at(0).met, 1);
}

}  // namespace
}  // namespace quasi::server::test
