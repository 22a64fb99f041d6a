// Tests random graphs of jobs against a model that decides each state from the ends of the others
// alone. A failure prints the seed.

#include <map>
#include <set>

#include "tests/service/server/dependencies/dependencies_fixture.hpp"

namespace quasi::server::test {
namespace {

using Act = ChangeTurns::Act;

/// The model's view of a job.
struct Belief {
  std::vector<std::pair<std::string, Condition>> after;
  JobState state = JobState::kQueued;
  std::optional<Grant> grant;
  bool is_held = false;
};

class RandomDependencies : public DependenciesTest {
 protected:
  void submit_one() {
    Belief belief;
    NewJob job = simple_job("j" + std::to_string(beliefs_.size()));
    std::set<std::string> named;
    for (std::uint64_t n = below(4); n > 0 && !order_.empty(); --n) {
      const std::string& other = order_[below(order_.size())];
      const Condition condition = below(2) == 0 ? Condition::kSuccess : Condition::kFinished;
      const JobState ended = beliefs_.at(other).state;
      const bool hopeless = condition == Condition::kSuccess && ended > JobState::kSucceeded;
      if (hopeless || !named.insert(other).second) continue;
      job.dependencies.push_back({.job = uid(other), .condition = condition, .field = "f"});
      belief.after.emplace_back(other, condition);
    }
    const std::string added = add(job);
    order_.push_back(added);
    beliefs_[added] = belief;
  }

  /// Decides the states of waiting jobs again, in the order of their submission.
  void decide() {
    for (const std::string& uid : order_) {
      Belief& belief = beliefs_.at(uid);
      if (belief.state > JobState::kQueued) continue;
      bool waits = false, fails = false;
      for (const auto& [other, condition] : belief.after) {
        const JobState ended = beliefs_.at(other).state;
        waits = waits || !is_final(ended);
        fails = fails || (condition == Condition::kSuccess && ended > JobState::kSucceeded);
      }
      belief.state = fails            ? JobState::kFailed
                     : belief.is_held ? JobState::kHeld
                     : waits          ? JobState::kBlocked
                                      : JobState::kQueued;
    }
  }

  void step() {
    const std::string uid = order_.empty() ? "" : order_[below(order_.size())];
    switch (uid.empty() ? 0 : below(6)) {
      case 0:
        if (order_.size() < 60) submit_one();
        break;
      case 1:
        grant_one();
        break;
      case 2:
      case 3:
        end_one(uid);
        break;
      case 4:
        if (beliefs_.at(uid).grant || below(4) != 0) break;
        cancel({uid});
        if (!is_final(beliefs_.at(uid).state)) beliefs_.at(uid).state = JobState::kCancelled;
        break;
      case 5:
        hold_or_release(uid);
        break;
    }
    decide();
  }

  void grant_one() {
    const auto grant = start();
    const bool any = std::any_of(beliefs_.begin(), beliefs_.end(), [](const auto& job) {
      return job.second.state == JobState::kQueued;
    });
    ASSERT_EQ(grant.has_value(), any);
    if (!grant) return;
    Belief& belief = beliefs_.at(grant->job.uid);
    EXPECT_EQ(belief.state, JobState::kQueued) << "granted while it waits";
    belief.state = JobState::kRunning;
    belief.grant = grant;
  }

  void end_one(const std::string& uid) {
    Belief& belief = beliefs_.at(uid);
    if (!belief.grant) return;
    const bool succeeds = below(3) != 0;
    end(*belief.grant, "result", succeeds ? AttemptOutcome::kSucceeded : AttemptOutcome::kFailed);
    belief.grant.reset();
    belief.state = succeeds ? JobState::kSucceeded : JobState::kFailed;
  }

  void hold_or_release(const std::string& uid) {
    Belief& belief = beliefs_.at(uid);
    if (belief.state > JobState::kQueued) return;
    change(uid, belief.is_held ? Act::kRelease : Act::kHold);
    belief.is_held = !belief.is_held;
  }

  void compare() {
    for (const auto& [uid, belief] : beliefs_)
      ASSERT_EQ(state(uid), belief.state)
          << name_of(state(uid)) << ", the model says " << name_of(belief.state);
  }

  std::uint64_t below(std::uint64_t n) { return chance_.next() % n; }

  SeededRandom chance_{1};
  std::vector<std::string> order_;
  std::map<std::string, Belief> beliefs_;
};

TEST_F(RandomDependencies, StatesFollowFromTheEndsOfTheOthers) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    chance_ = SeededRandom(seed);
    while (start()) {
    }  // Jobs of the last seed that are left stay with the worker.
    order_.clear();
    beliefs_.clear();
    for (int i = 0; i < 250; ++i) {
      step();
      if (!HasFailure()) compare();
      if (HasFailure()) FAIL() << "at step " << i;
    }
  }
}

}  // namespace
}  // namespace quasi::server::test
