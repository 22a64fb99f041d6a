// Runs hundreds of jobs while workers are killed at random and the server every few seconds. Every
// acknowledged job must end once, under the fence that was current.
//
// In one test the owner comes by the Unix socket. In the other one twenty users of four tenants and
// the workers come by TLS with tokens. There no quota may be exceeded at any time, and each tenant
// must get its share of the GPUs while all tenants have jobs that wait.
//
// QUASI_SEED chooses the sequence of kills and is printed. QUASI_KILL_JOBS is the number of jobs.

#include <google/protobuf/util/time_util.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>

#include "quasi/v1/admin_service.grpc.pb.h"
#include "tests/service/jobs/kill_tenants.hpp"
#include "tests/service/support/history.hpp"
#include "tests/service/support/people/tls_door.hpp"
#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kWorkers = 5;
// Kills are timed by the clock, but never faster than jobs end. Otherwise a machine where a worker
// starts more slowly than it is killed would finish nothing, and jobs would use up their ten
// attempts.
constexpr int kJobsPerWorkerKill = 10, kJobsPerServerKill = 70;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

v1::JobSpec some_work(std::mt19937_64& random) {
  v1::JobSpec spec;
  switch (random() % 4) {
    case 0:
      spec = noop();
      break;
    case 1:
      spec = sleep_for(0.02 + 0.01 * static_cast<double>(random() % 20));
      break;
    case 2:
      spec = checkpointing(3, 0.03);
      break;
    default:
      spec.mutable_test()->mutable_flaky()->set_failures(static_cast<std::uint32_t>(random() % 2));
      spec.mutable_test()->mutable_flaky()->set_status(15);
  }
  // Workers that stay away longer than the lease cost an attempt; no job may use up its attempts.
  spec.mutable_retry()->set_max_attempts(10);
  return spec;
}

class Chaos {
 public:
  /// Without users all jobs belong to the owner of the server, who comes by the Unix socket.
  Chaos(std::uint64_t n_jobs, std::uint64_t seed, int n_users = 0)
      : n_jobs_(n_jobs), random_(seed), n_users_(n_users) {}

  void run() {
    if (n_users_ > 0) open_door();
    service_.start_server();
    if (n_users_ > 0) admit_everyone();
    for (int i = 0; i < kWorkers; ++i) start_worker(i);
    auto next_kill = within(0.5), next_server_kill = within(5);
    std::size_t n_submitted = 0;
    // The loop goes on as long as jobs end, however slow the machine is.
    for (auto hangs = within(kHangSeconds); std::chrono::steady_clock::now() < hangs;) {
      // A call for each tenant, so that the jobs of none run out before its next turn.
      for (int i = 0; i < (users_.empty() ? 1 : kTenants) && n_submitted < n_jobs_; ++i)
        n_submitted += submit_some(n_jobs_ - n_submitted);
      if (std::chrono::steady_clock::now() > next_kill &&
          worker_kills_ <= 10 + ended() / kJobsPerWorkerKill) {
        kill_a_worker();
        next_kill = within(0.3 + 0.01 * static_cast<double>(random_() % 70));
      }
      if (std::chrono::steady_clock::now() > next_server_kill &&
          server_kills_ <= 1 + ended() / kJobsPerServerKill) {
        service_.kill_server();
        ++server_kills_;
        service_.start_server();
        next_server_kill = within(5);
      }
      restart_workers();
      watch_the_clock();
      const int ended_before = ended();
      if (all_over() && n_submitted == n_jobs_) break;
      if (ended() > ended_before) hangs = within(kHangSeconds);
      wait_for([] { return false; }, within(0.05));
    }
    for (const auto& id : ids_) {
      history_.acknowledged(id);
      const v1::Job job = service_.get(id);
      history_.dumped(job);
      if (n_users_ > 0 && job.owner() != owners_.at(id))
        misplaced_.push_back(id + " of " + owners_.at(id) + " belongs to " + job.owner());
    }
    for (int i = 0; i < kWorkers; ++i) {
      service_.kill_worker(name(i));
      history_.worker_log(name(i), service_.worker_log(name(i)));
    }
  }

  const History& history() const { return history_; }
  /// Counts jobs that belong to another user than the one who submitted them.
  const std::vector<std::string>& misplaced() const { return misplaced_; }
  /// Ends the server and reads the use of it by users and tenants.
  TurnsHistory turns() {
    std::vector<std::string> tenants;
    for (std::size_t i = 0; i < kTenants; ++i) tenants.push_back(tenant_name(i));
    service_.kill_server();
    return read_turns_history(service_.directory() / "data" / "quasi.db", tenants, 5);
  }
  /// Number of submissions that a quota refused.
  int refused() const { return n_refused_; }
  int worker_kills() const { return worker_kills_; }
  int server_kills() const { return server_kills_; }

 private:
  static std::string name(int worker) { return std::string(1, 'w').append(std::to_string(worker)); }
  void start_worker(int worker) {
    std::vector<std::string> flags{"--slots", "2"};
    if (n_users_ > 0) {
      flags = door_->worker_flags(worker_token_);
      flags.insert(flags.end(), {"--devices", "fake:" + (service_.directory() / "gpus").string()});
    }
    service_.start_worker(name(worker), flags);
  }
  void open_door() {
    door_.emplace(service_.directory());
    service_.add_server_flags(door_->server_flags(service_.address()));
    service_.add_server_flags({"--user-jobs", std::to_string(kUserJobs), "--user-running-gpus",
                               std::to_string(kUserGpus)});
    std::ofstream gpus(service_.directory() / "gpus");
    for (std::int64_t i = 0; i < kGpusOfWorker; ++i)
      gpus << "[[device]]\nuuid = 'GPU-" << i << "'\n";
  }
  void admit_everyone() {
    for (std::size_t i = 0; i < kTenants; ++i) set_quotas(i);
    const auto n_users = static_cast<std::size_t>(n_users_);
    for (std::size_t i = 0; i < n_users; ++i) {
      const std::string name = "user" + std::to_string(i);
      const std::size_t tenant = i % kTenants;
      const std::string token =
          door_->token_file(service_.channel(), name, v1::ROLE_USER, tenant_name(tenant));
      users_.push_back({.name = name,
                        .stub = v1::JobService::NewStub(door_->open(token)),
                        .left = n_jobs_ * (tenant + 1) * kTenants / kSumOfParts / n_users});
    }
    // The last user submits the rest of an uneven division.
    std::uint64_t n_shared = 0;
    for (const User& user : users_) n_shared += user.left;
    users_.back().left += n_jobs_ - n_shared;
    worker_token_ = door_->token_file(service_.channel(), "w", v1::ROLE_WORKER);
  }
  void set_quotas(std::size_t tenant) {
    v1::SaveQuotasRequest request;
    request.set_tenant(tenant_name(tenant));
    request.mutable_quotas()->set_shares(100 * (static_cast<std::uint32_t>(tenant) + 1));
    request.mutable_quotas()->set_jobs(kTenantJobs);
    request.mutable_quotas()->set_running_gpus(kTenantGpus);
    v1::SaveQuotasResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        v1::AdminService::NewStub(service_.channel())->SaveQuotas(&context, request, &response);
    if (!status.ok()) throw std::runtime_error("quotas: " + status.error_message());
  }

  std::size_t submit_some(std::size_t left) {
    if (users_.empty()) {
      const auto specs = some_jobs(std::min<std::size_t>(left, 20));
      for (const auto& id : service_.submit(specs)) ids_.push_back(id);
      return specs.size();
    }
    // The users take turns. Those whose quota has no room try again at their next turn.
    User& user = users_[n_calls_++ % users_.size()];
    auto specs = some_jobs(std::min<std::size_t>(user.left, 5));
    for (v1::JobSpec& spec : specs) {
      spec.mutable_resources()->set_gpus(1);
      spec.mutable_max_runtime()->set_seconds(kMaxRuntimeS);
      if (n_jobs_ >= kFullSize && spec.test().has_sleep()) lengthen(spec);
    }
    if (specs.empty()) return 0;
    try {
      for (const auto& id : service_.submit(specs, *user.stub)) {
        ids_.push_back(id);
        owners_[id] = user.name;
      }
    } catch (const std::runtime_error& refusal) {
      if (std::string(refusal.what()).find("that wait or run are more than") == std::string::npos)
        throw;
      ++n_refused_;
      return 0;
    }
    user.left -= specs.size();
    return specs.size();
  }
  /// Makes a job that sleeps last 0.4 to 4.2 s, so that the tenants contest the GPUs for minutes.
  static void lengthen(v1::JobSpec& spec) {
    auto& duration = *spec.mutable_test()->mutable_sleep()->mutable_duration();
    duration = TimeUtil::MillisecondsToDuration(20 * TimeUtil::DurationToMilliseconds(duration));
  }
  std::vector<v1::JobSpec> some_jobs(std::size_t n) {
    std::vector<v1::JobSpec> specs;
    for (std::size_t i = 0; i < n; ++i) specs.push_back(some_work(random_));
    return specs;
  }
  void kill_a_worker() {
    const int worker = static_cast<int>(random_() % kWorkers);
    if (!service_.worker_runs(name(worker))) return;
    service_.kill_worker(name(worker));
    ++worker_kills_;
    // Workers mostly restart at once, and sometimes stay away for longer than the lease.
    down_[worker] = within(random_() % 8 == 0 ? 3.0 : 0.01 * static_cast<double>(random_() % 50));
  }
  void restart_workers() {
    for (auto entry = down_.begin(); entry != down_.end();) {
      if (std::chrono::steady_clock::now() < entry->second) {
        ++entry;
        continue;
      }
      start_worker(entry->first);
      entry = down_.erase(entry);
    }
  }
  /// True once every job has ended. Ended jobs stay ended, so each is queried only until then.
  bool all_over() {
    for (; n_over_ < ids_.size(); ++n_over_)
      if (!is_final(service_.get(ids_[n_over_]).state())) return false;
    return true;
  }
  /// Number of leading jobs that all_over() has seen ended.
  int ended() const { return static_cast<int>(n_over_); }
  /// Records jumps of the wall clock, because the times in the server's history come from it.
  void watch_the_clock() {
    const auto ahead = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch() -
        std::chrono::steady_clock::now().time_since_epoch());
    if (newest_ahead_) history_.clock_set_back((*newest_ahead_ - ahead).count());
    newest_ahead_ = ahead;
  }

  std::uint64_t n_jobs_;
  std::mt19937_64 random_;
  int n_users_ = 0;
  std::optional<TlsDoor> door_;
  struct User {
    std::string name;
    std::unique_ptr<v1::JobService::Stub> stub;
    std::uint64_t left = 0;  ///< number of jobs that they have not submitted yet
  };
  std::vector<User> users_;
  std::string worker_token_;
  std::size_t n_calls_ = 0;
  int n_refused_ = 0;
  std::map<std::string, std::string> owners_;  ///< job → the user who submitted it
  std::vector<std::string> misplaced_;
  Service service_{{"--lease-ttl", "2", "--restart-grace", "10"}};
  History history_;
  std::vector<std::string> ids_;
  std::size_t n_over_ = 0;
  std::map<int, Deadline> down_;
  int worker_kills_ = 0, server_kills_ = 0;
  std::optional<std::chrono::milliseconds> newest_ahead_;
};

void expect_nothing_lost(std::uint64_t n_jobs, std::uint64_t seed, int n_users = 0) {
  seed = number_from("QUASI_SEED", seed);
  n_jobs = number_from("QUASI_KILL_JOBS", n_jobs);
  std::cout << "QUASI_SEED=" << seed << " QUASI_KILL_JOBS=" << n_jobs << std::endl;
  const auto start = std::chrono::steady_clock::now();
  Chaos chaos(n_jobs, seed, n_users);
  chaos.run();
  const auto verdict = chaos.history().judge();
  std::cout << n_jobs << " jobs, " << chaos.history().attempts() << " attempts, "
            << chaos.worker_kills() << " workers and " << chaos.server_kills()
            << " servers killed, "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
            << " s: " << verdict.lost << " lost, " << verdict.failed << " failed, "
            << verdict.doubles << " double, " << verdict.stale << " stale\n";
  for (const auto& [outcome, count] : chaos.history().outcomes())
    std::cout << "  " << outcome << ' ' << count << '\n';
  for (const auto& offence : verdict.offences) ADD_FAILURE() << offence;
  for (const auto& offence : chaos.misplaced()) ADD_FAILURE() << offence;
  EXPECT_GT(chaos.worker_kills(), 0);
  if (n_users == 0) return;
  std::cout << chaos.refused() << " submissions refused by quotas\n";
  EXPECT_GT(chaos.refused(), 0) << "no quota was reached";
  expect_fair_turns(chaos.turns(), n_jobs >= kFullSize);
}

// The full size of 2,000 jobs is the test `kill_test_full`, labelled nightly.
TEST(Kill, LosesNothing) { expect_nothing_lost(300, std::random_device{}()); }

// Twenty users and the workers come by TLS, with the same kills in each run. The full size is
// `kill_test_tls_full`.
TEST(Kill, LosesNothingOfTwentyUsersOverTls) { expect_nothing_lost(200, 1, 20); }

// Tests that the judge itself detects violations.
class Judge : public testing::Test {
 protected:
  v1::Job job(const std::string& id) {
    v1::Job job;
    job.set_id(id);
    job.set_state(v1::JOB_STATE_SUCCEEDED);
    job.set_attempts(1);
    job.set_max_attempts(3);
    job.set_summary_json("{}");
    job.add_artifacts()->set_name("x");
    return job;
  }
  void attempt(v1::Job& job, std::uint64_t fence, v1::AttemptOutcome outcome, int granted,
               int ended) {
    auto* attempt = job.add_attempt_history();
    attempt->set_number(static_cast<std::uint32_t>(job.attempt_history_size()));
    attempt->set_fence(fence);
    attempt->set_outcome(outcome);
    attempt->mutable_granted()->set_seconds(granted);
    attempt->mutable_ended()->set_seconds(ended);
  }
  History history;
};

TEST_F(Judge, AcceptsWhatIsRight) {
  auto right = job("j");
  attempt(right, 1, v1::ATTEMPT_OUTCOME_EXPIRED, 1, 2);
  attempt(right, 5, v1::ATTEMPT_OUTCOME_SUCCEEDED, 2, 3);
  history.acknowledged("j");
  history.dumped(right);
  history.worker_log("w", R"({"event":"attempt_over","ending":"succeeded","job":"j","fence":5})");
  EXPECT_TRUE(history.judge().clean());
}

TEST(FairTurns, AUserWhoGotMoreThanTheOthersIsSeen) {
  TurnsHistory turns;
  turns.user_gpu_s_in_contest["phonons"] = {{1, 100.0}, {2, 100.0}, {3, 115.0}};
  expect_equal_users(turns, true);
  turns.user_gpu_s_in_contest["phonons"][3] = 130.0;
  EXPECT_NONFATAL_FAILURE(expect_equal_users(turns, true), "user 3 of phonons");
}

TEST_F(Judge, SeesLostDoubleAndStale) {
  history.acknowledged("gone");
  auto twice = job("twice");
  attempt(twice, 1, v1::ATTEMPT_OUTCOME_SUCCEEDED, 1, 2);
  attempt(twice, 2, v1::ATTEMPT_OUTCOME_SUCCEEDED, 2, 3);
  history.dumped(twice);
  auto together = job("together");
  attempt(together, 3, v1::ATTEMPT_OUTCOME_EXPIRED, 1, 5);
  attempt(together, 4, v1::ATTEMPT_OUTCOME_SUCCEEDED, 4, 6);
  history.dumped(together);
  auto stale = job("stale");
  attempt(stale, 7, v1::ATTEMPT_OUTCOME_EXPIRED, 1, 2);
  attempt(stale, 8, v1::ATTEMPT_OUTCOME_SUCCEEDED, 2, 3);
  history.dumped(stale);
  history.worker_log("w",
                     R"({"event":"attempt_over","ending":"succeeded","job":"stale","fence":7})");
  const auto verdict = history.judge();
  EXPECT_EQ(verdict.lost, 1);
  EXPECT_EQ(verdict.doubles, 2);
  EXPECT_EQ(verdict.stale, 1);
}

}  // namespace
}  // namespace quasi::test
