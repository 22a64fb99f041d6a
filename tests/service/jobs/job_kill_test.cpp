// Runs the three kinds of physics through a real server and a real worker, and kills the engine ten
// times during one job. An attempt that recorded a newer checkpoint counts toward no limit. No
// finished part is computed again, and the result has the bits of an undisturbed job.
//
// QUASI_SEED chooses the moments of the kills; it is printed.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <regex>

#include "tests/service/support/deck_jobs.hpp"
#include "tests/support/mosfet_decks.hpp"

namespace quasi::test {
namespace {

constexpr int kKills = 10;
/// A job fails at the third CHILD_CRASHED without a newer checkpoint (server/queue/retry.cpp).
constexpr int kMostCrashes = 2;

std::mt19937_64 seeded() {
  const char* text = std::getenv("QUASI_SEED");
  const std::uint64_t seed = text ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::cout << "QUASI_SEED=" << seed << std::endl;
  return std::mt19937_64(seed);
}

class JobKill : public testing::Test {
 protected:
  void SetUp() override {
    service.start_server();
    service.start_worker("w");
  }
  void TearDown() override {
    if (HasFailure())
      std::cerr << service.server().output() << "--- worker\n" << service.worker_log("w") << '\n';
  }

  std::filesystem::path write_deck(const std::string& text) {
    const auto path = service.directory() / "deck.toml";
    std::ofstream(path) << text;
    return path;
  }
  v1::Job undisturbed(const v1::JobSpec& spec) {
    const auto began = std::chrono::steady_clock::now();
    const v1::Job job = service.wait_end(service.submit(spec));
    EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.failure().message();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return job;
  }

  /// True if the attempt has complete checkpoint files newer than the one it was given.
  bool has_own_checkpoint(std::uint64_t fence, std::int64_t given_step) {
    std::error_code none;
    const auto directory = service.worker_state("w") / "attempts" / std::to_string(fence) / "ckpt";
    for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("ckpt-") && std::stoll(name.substr(5)) > given_step) return true;
    }
    return false;
  }

  /// A job whose engines got SIGKILL ten times, after its end. A job that ended earlier shows
  /// nothing, because the machine was too slow or too fast; then another job is killed at shorter
  /// intervals.
  v1::Job killed(const v1::JobSpec& spec) {
    auto random = seeded();
    for (double haste = 1.0; haste > 1e-3; haste *= 0.5) {
      const auto part_of_a_run = [&](double most) {
        return within(seconds_ * haste * std::uniform_real_distribution<double>(0.0, most)(random));
      };
      const std::string id = service.submit(spec);
      if (kill_ten_times(id, part_of_a_run)) return service.get(id);
      if (HasFailure()) break;
    }
    ADD_FAILURE() << "no job lived to see ten kills";
    return {};
  }

  /// Sends SIGKILL to ten engines of the job. The kills alternate between two moments: some time
  /// after the attempt completed its first checkpoint, reported or not, and any time. The kills at
  /// any time stay below the crash limit.
  /// @return false if the job ended before
  bool kill_ten_times(const std::string& id,
                      const std::function<Deadline(double most)>& part_of_a_run) {
    int crashes = 0, with_checkpoint = 0;
    std::vector<std::uint32_t> to_resume;  // attempts that start from a checkpoint
    for (int n_killed = 0; n_killed < kKills; ++n_killed) {
      const auto attempt = [&](const v1::Job& job) {
        return job.attempt_history_size() > n_killed ? job.attempt_history(n_killed)
                                                     : v1::Attempt();
      };
      const auto started = service.wait(id, [&](const v1::Job& job) {
        return attempt(job).has_started() || is_final(job.state());
      });
      if (!attempt(started).has_started()) {
        ADD_FAILURE() << "ended after " << n_killed << " kills: " << started.failure().message();
        return false;
      }
      const std::uint64_t fence = attempt(started).fence();
      const std::int64_t given_step =
          started.checkpoint().fence() == fence ? 0 : started.checkpoint().step();
      const auto engines = children_of(service.worker("w").pid());
      const auto over = [&] { return attempt(service.get(id)).has_ended(); };
      const bool is_any_time = n_killed % 2 == 1 && crashes < kMostCrashes;
      if (!is_any_time) wait_for([&] { return has_own_checkpoint(fence, given_step) || over(); });
      wait_for([] { return false; }, part_of_a_run(is_any_time ? 0.06 : 0.02));
      for (const pid_t engine : engines) kill(engine, SIGKILL);
      const auto ended =
          service.wait(id, [&](const v1::Job& job) { return attempt(job).has_ended(); });
      if (attempt(ended).outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED) return false;
      EXPECT_EQ(attempt(ended).failure().reason(), v1::FAILURE_REASON_CHILD_CRASHED);
      EXPECT_EQ(attempt(ended).failure().signal(), SIGKILL);
      const bool recorded = ended.checkpoint().fence() == fence;
      EXPECT_TRUE(recorded || is_any_time)
          << "a checkpoint that was complete when the engine was killed is lost";
      ++(recorded ? with_checkpoint : crashes);
      if (with_checkpoint > 0) to_resume.push_back(static_cast<std::uint32_t>(n_killed) + 2);
    }
    const v1::Job job = service.wait_end(id);
    std::cout << "    " << seconds_ << " s undisturbed; " << with_checkpoint
              << " attempts killed after a newer checkpoint, " << crashes << " before\n";
    EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.failure().message();
    EXPECT_EQ(job.attempt_history_size(), kKills + 1);
    EXPECT_EQ(job.attempts(), static_cast<std::uint32_t>(crashes + 1))
        << "what recorded a newer checkpoint counts toward no limit";
    EXPECT_GE(with_checkpoint, kKills - kMostCrashes);
    // The last attempt lived to report its resumption. Of the others, those killed before they had
    // read the checkpoint reported nothing.
    const auto resumed = [&](std::uint32_t number) {
      return service.log_of(id, number).find("resumed") != std::string::npos;
    };
    EXPECT_TRUE(resumed(to_resume.back())) << service.log_of(id, to_resume.back());
    EXPECT_GE(std::count_if(to_resume.begin(), to_resume.end(), resumed),
              static_cast<std::ptrdiff_t>(to_resume.size()) - kMostCrashes);
    return true;
  }

  Service service;
  double seconds_ = 0.0;
};

TEST_F(JobKill, FourPhononsOfSilicon) {
  const v1::JobSpec spec = silicon_4ph(service, "7", "0.05");
  const auto a = undisturbed(spec), b = killed(spec);
  expect_same_results(fetch(service, a, "result.h5"), fetch(service, b, "result.h5"), 40);
}

// Points that an attempt finished must be in the checkpoint of the next one. The test reads what
// the attempt reports about itself.
TEST_F(JobKill, SweepOfAMosfet) {
  v1::JobSpec spec;
  add_input(service, &spec, "deck.toml", write_deck(kMosfetCoarse + R"([bias]
vgs = [0.4, 0.6]
vds = [0.1, 0.2, 0.3]
[run]
t_end_fs = 40.0
steady_tol = 1e-6
window_fs = 5.0
refresh_steps = 10
)"));
  spec.mutable_mosfet()->set_deck("deck.toml");
  const auto a = undisturbed(spec), b = killed(spec);
  expect_same_results(fetch(service, a, "result.h5"), fetch(service, b, "result.h5"), 60);
  std::ifstream x(fetch(service, a, "iv.csv")), y(fetch(service, b, "iv.csv"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(x), {}),
            std::string(std::istreambuf_iterator<char>(y), {}));
  int n_finished = 0;
  for (std::uint32_t n = 1; n <= kKills + 1; ++n) {
    const std::string log = service.log_of(b.id(), n);
    const std::regex resumed("resumed from .*: ([0-9]+) of 6 points"), end_of_point(": I = ");
    const auto n_own = static_cast<int>(
        std::distance(std::sregex_iterator(log.begin(), log.end(), end_of_point), {}));
    std::smatch found;
    const bool says_resumed = std::regex_search(log, found, resumed);
    if (!says_resumed && n_own == 0) continue;  // killed before it reported anything
    const int n_resumed = says_resumed ? std::stoi(found[1]) : 0;
    EXPECT_GE(n_resumed, n_finished) << "attempt " << n << " lost a finished point:\n" << log;
    n_finished = n_resumed + n_own;
  }
  EXPECT_EQ(n_finished, 6);
}

TEST_F(JobKill, QuasiparticlesOfSilicon) {
  v1::JobSpec spec;
  add_input(service, &spec, "deck.toml", write_deck(R"(kind = "gw"
checkpoint_interval_s = 0.0
[meanfield]
source = "epm"
cell = "cubic"
cutoff_ry = 5.0
k_grid = [2, 2, 2]
bands = 80
[epsilon]
cutoff_ry = 2.5
[sigma]
band_min = 12
band_max = 20
)"));
  spec.mutable_gw()->set_deck("deck.toml");
  const auto a = undisturbed(spec), b = killed(spec);
  expect_same_results(fetch(service, a, "result.h5"), fetch(service, b, "result.h5"), 10);
}

}  // namespace
}  // namespace quasi::test
