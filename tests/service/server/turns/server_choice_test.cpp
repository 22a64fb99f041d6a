// Tests the order of grants: turns of tenants and users, jobs behind others, and reservations.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/service/server/turns/turns_world.hpp"

namespace quasi::server::test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
const Scope kAda = user_scope(1, "phonons");
const Scope kBen = user_scope(2, "phonons");
const Scope kEve = user_scope(3, "devices");

// A small job starts although forty larger ones of the same class, or forty longer ones, come
// before it.
TEST(Choice, ASmallJobIsNotHiddenBehindLargeOnes) {
  TurnsWorld world;
  RegisterWorker worker = world.add_worker("w_1", 1);
  worker.devices.at(0).free_bytes = 40 * kGiB;
  for (int i = 0; i < 40; ++i) world.submit(kAda, gpu_job("large", 1, kHourMs, 60 * kGiB));
  const std::string small = world.submit(kAda, gpu_job("small", 1, kHourMs, 33 * kGiB));
  const auto grants = world.acquire(worker);
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].job.uid, small);
  world.complete(grants[0]);
  for (int i = 0; i < 40; ++i) world.submit(kAda, gpu_job("long", 1, 2 * kHourMs));
  const std::string brief = world.submit(kAda, gpu_job("brief", 1, kHourMs));
  const auto leases =
      world.world_->apply(AcquireLeases{.worker_id = "w_1",
                                        .incarnation = worker.worker.incarnation,
                                        .acquire_id = uuid_of(777),
                                        .slots = {{.device_id = "gpu0", .free_bytes = 32 * kGiB}},
                                        .time_left_ms = kHourMs});
  ASSERT_EQ(leases.grants.size(), 1U);
  EXPECT_EQ(leases.grants[0].job.uid, brief);
}

// Priority orders the jobs of one user, and gives the user no turn of another.
TEST(Choice, PriorityOrdersTheJobsOfOneUser) {
  TurnsWorld world;
  const RegisterWorker worker = world.add_worker("w_1", 1);
  NewJob urgent = gpu_job("urgent", 1);
  urgent.row.priority = 50;
  const std::string first = world.submit(kAda, gpu_job("first", 1));
  const std::string hers = world.submit(kAda, urgent);
  const std::string bens = world.submit(kBen, gpu_job("ben", 1));
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) {
    const auto grants = world.acquire(worker);
    ASSERT_EQ(grants.size(), 1U);
    order.push_back(grants[0].job.uid);
    world.clock_.advance(1'000);
    world.complete(grants[0]);
  }
  EXPECT_EQ(order, (std::vector<std::string>{hers, bens, first}));
}

// Use counts after a restart, and it counts half after a half-life.
TEST(Choice, PastUseDecaysAndSurvivesARestart) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  const RegisterWorker worker = world.add_worker("w_1", 1);
  const auto use = [&](const Scope& user, std::int64_t hours) {
    world.submit(user, gpu_job("past", 1, 100 * kHourMs));
    const Grant grant = world.acquire(worker).at(0);
    world.clock_.advance(hours * kHourMs);
    world.complete(grant);
  };
  use(kAda, 30);
  world.clock_.advance(14 * 24 * kHourMs);
  use(kEve, 10);
  world.submit(kEve, gpu_job("eve", 1));
  world.submit(kAda, gpu_job("ada", 1));
  world.open();
  // Ada's 30 hours of two half-lives ago count 7.5, less than Eve's 10.
  const Grant first = world.acquire(worker).at(0);
  EXPECT_EQ(first.job.name, "ada");
  world.clock_.advance(6 * kHourMs);
  world.complete(first);
  world.submit(kAda, gpu_job("ada", 1));
  EXPECT_EQ(world.acquire(worker).at(0).job.name, "eve");
}

// A job of four GPUs gets its turn although single-GPU jobs of another user never end. Short ones
// start meanwhile, as far as their limits end before it starts.
TEST(Choice, AJobOfSeveralGpusDoesNotStarve) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  const RegisterWorker worker = world.add_worker("w_1", 4);
  std::vector<std::pair<std::int64_t, Grant>> running;
  std::int64_t bens = 0;
  const auto keep_queue = [&] {
    for (; bens < 8; ++bens) world.submit(kBen, gpu_job("single", 1, (1 + bens % 4) * kHourMs));
  };
  keep_queue();
  for (Grant& grant : world.acquire(worker))
    running.emplace_back(world.clock_.time.wall_ms + grant.job.max_runtime_ms, std::move(grant));
  ASSERT_EQ(running.size(), 4U);
  bens -= 4;
  const std::string large = world.submit(kAda, gpu_job("large", 4));
  std::int64_t reserved_ms = 0;
  for (const auto& [end_ms, grant] : running) reserved_ms = std::max(reserved_ms, end_ms);
  bool is_started = false;
  int backfilled = 0;
  for (int step = 0; step < 40 && !is_started; ++step) {
    keep_queue();
    const auto first =
        std::min_element(running.begin(), running.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    world.clock_.advance(std::max<std::int64_t>(first->first - world.clock_.time.wall_ms, 0));
    world.complete(first->second);
    running.erase(first);
    for (Grant& grant : world.acquire(worker)) {
      if (grant.job.uid == large) {
        is_started = true;
        EXPECT_LE(world.clock_.time.wall_ms, reserved_ms) << "later than the limits permit";
        continue;
      }
      ++backfilled;
      --bens;
      EXPECT_LE(world.clock_.time.wall_ms + grant.job.max_runtime_ms, reserved_ms)
          << "delays the reserved start";
      running.emplace_back(world.clock_.time.wall_ms + grant.job.max_runtime_ms, std::move(grant));
    }
  }
  EXPECT_TRUE(is_started);
  EXPECT_GT(backfilled, 0) << "slots stood idle that short jobs could use";
}

// Of two workers the one on which the job can start first is reserved, and the other goes on.
TEST(Choice, OneWorkerIsReserved) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  const RegisterWorker slow = world.add_worker("w_1", 2);
  const RegisterWorker quick = world.add_worker("w_2", 2);
  for (const std::int64_t hours : {9, 9}) world.submit(kBen, gpu_job("long", 1, hours * kHourMs));
  const auto of_slow = world.acquire(slow);
  for (const std::int64_t hours : {3, 3}) world.submit(kBen, gpu_job("short", 1, hours * kHourMs));
  const auto of_quick = world.acquire(quick);
  ASSERT_EQ(of_slow.size() + of_quick.size(), 4U);
  world.submit(kAda, gpu_job("pair", 2));
  world.submit(kBen, gpu_job("next", 1, 5 * kHourMs));
  world.complete(of_quick.at(0));
  EXPECT_TRUE(world.acquire(quick).empty()) << "the reserved worker took a job of five hours";
  world.complete(of_slow.at(0));
  EXPECT_EQ(world.acquire(slow).at(0).job.name, "next");
  world.complete(of_quick.at(1));
  EXPECT_EQ(world.acquire(quick).at(0).job.name, "pair");
}

// Two of four GPUs are busy, and a job that needs three waits for them. It leaves one GPU, so that
// one job of any length starts there, and a second one only if it ends in time.
TEST(Choice, SlotsThatTheReservedJobDoesNotNeedAreUsed) {
  TurnsWorld world;
  const RegisterWorker worker = world.add_worker("w_1", 4);
  world.submit(kAda, gpu_job("pair", 2, kHourMs));
  ASSERT_EQ(world.acquire(worker).size(), 1U);
  world.submit(kAda, gpu_job("three", 3));
  for (int i = 0; i < 2; ++i) world.submit(kAda, gpu_job("single", 1, 100 * kHourMs));
  const auto beside = world.acquire(worker);
  ASSERT_EQ(beside.size(), 1U);
  EXPECT_EQ(beside[0].job.name, "single");
  world.submit(kAda, gpu_job("brief", 1, kHourMs / 2));
  const auto before = world.acquire(worker);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].job.name, "brief");
}

/// Lets Ada and then Ben run for ten hours. Eve's tenant has so many shares that it comes first
/// ever after.
void let_both_use_the_machine(TurnsWorld& world, const RegisterWorker& worker) {
  world.allow(Account::of_tenant("devices"), {.shares = 1'000'000});
  for (const Scope& user : {kAda, kBen}) {
    world.submit(user, gpu_job("use", 1, 10 * kHourMs));
    const auto grants = world.acquire(worker);
    ASSERT_EQ(grants.size(), 1U);
    world.clock_.advance(10 * kHourMs);
    world.complete(grants[0]);
  }
}

// A user whose job has waited for a day, and for whom nothing ran meanwhile, goes before the turns:
// one of a tenant an hour. Ben's second job waits on, since his first has begun.
TEST(Choice, AUserWhoGotNothingForADayGoesFirst) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  const RegisterWorker worker = world.add_worker("w_1", 1);
  ASSERT_NO_FATAL_FAILURE(let_both_use_the_machine(world, worker));
  for (const Scope& user : {kBen, kAda, kBen}) world.submit(user, gpu_job("patient", 1));
  for (int i = 0; i < 100; ++i) world.submit(kEve, gpu_job("eve", 1));
  std::vector<std::pair<double, std::int64_t>> patient;  // hour of the grant, owner
  for (double hour = 0.0; hour < 36.0; hour += 0.5) {
    const auto grants = world.acquire(worker);
    ASSERT_EQ(grants.size(), 1U);
    if (grants[0].job.name == "patient") patient.emplace_back(hour, grants[0].job.owner_id);
    world.clock_.advance(kHourMs / 2);
    world.complete(grants[0]);
  }
  EXPECT_EQ(patient, (std::vector<std::pair<double, std::int64_t>>{{24.0, kBen.principal_id},
                                                                   {25.0, kAda.principal_id}}));
}

// After a look that finds no old job the next one comes ten minutes later.
TEST(Choice, ALateLookFindsTheOldJob) {
  TurnsWorld world{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  const RegisterWorker worker = world.add_worker("w_1", 1);
  ASSERT_NO_FATAL_FAILURE(let_both_use_the_machine(world, worker));
  world.submit(kBen, gpu_job("patient", 1));
  for (int i = 0; i < 9; ++i) world.submit(kEve, gpu_job("eve", 1));
  const auto next = [&] {
    const auto grants = world.acquire(worker);
    world.complete(grants.at(0));
    return grants[0].job.name;
  };
  world.clock_.advance(24 * kHourMs - 1);
  EXPECT_EQ(next(), "eve");
  world.clock_.advance(Ageing::kLookMs - 1);
  EXPECT_EQ(next(), "eve") << "a look at each claim would be slow";
  world.clock_.advance(1);
  EXPECT_EQ(next(), "patient");
}

/// Simulates 2,000 jobs of twenty users on eight GPUs and measures the GPU time that each account
/// got while all of them still had jobs to run.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : random_(seed) {
    world_.add_worker("w_1", 8);
    for (std::int64_t tenant = 0; tenant < 4; ++tenant)
      world_.allow(Account::of_tenant(tenant_of(tenant)), {.shares = 100 * (1 + tenant)});
    for (std::int64_t user = 0; user < kUsers; ++user)
      world_.allow(Account::of_principal(1 + user), {.shares = 100 * shares_of(user)});
  }

  static constexpr std::int64_t kUsers = 20;
  static std::string tenant_of(std::int64_t user) { return "t" + std::to_string(user % 4); }
  /// Shares of a user in its tenant, over 100.
  static std::int64_t shares_of(std::int64_t user) { return 1 + user / 4 % 2; }
  /// Shares of a user among all.
  static double part_of(std::int64_t user) {
    double of_tenant = 0;
    for (std::int64_t other = user % 4; other < kUsers; other += 4)
      of_tenant += static_cast<double>(shares_of(other));
    return static_cast<double>(1 + user % 4) / 10.0 * static_cast<double>(shares_of(user)) /
           of_tenant;
  }

  void run() {
    // Each user has as many jobs as their shares let them run, so that all are busy to the end.
    for (std::int64_t user = 0; user < kUsers; ++user) {
      left_[user] = static_cast<int>(std::lround(2'000 * part_of(user)));
      for (int i = 0; i < left_[user]; ++i)
        world_.submit(user_scope(1 + user, tenant_of(user)), gpu_job("job", 1, 4 * kHourMs));
    }
    start();
    while (!running_.empty()) {
      const auto first = running_.begin();
      world_.clock_.time.wall_ms += first->first - world_.clock_.time.monotonic_ms;
      world_.clock_.time.monotonic_ms = first->first;
      world_.world_->run([](WriteContext& write) { write.queue.tick(write.now); });
      const Grant grant = first->second;
      running_.erase(first);
      world_.complete(grant);
      start();
    }
  }

  /// Ratio of the GPU time that a user got to the part of their shares.
  double delivered(std::int64_t user) const {
    double all_ms = 0;
    for (const auto& [other, ms] : got_ms_) all_ms += ms;
    return got_ms_.at(user) / all_ms / part_of(user);
  }
  int jobs() const { return jobs_; }

 private:
  void start() {
    for (Grant& grant : world_.acquire(world_.workers_.front())) {
      ++jobs_;
      const std::int64_t user = grant.job.owner_id - 1;
      const std::int64_t ms = 60'000 + static_cast<std::int64_t>(random_.next() % 1'740'000);
      if (is_contended_) got_ms_[user] += static_cast<double>(ms);
      if (--left_[user] == 0) is_contended_ = false;
      running_.emplace(world_.clock_.time.monotonic_ms + ms, std::move(grant));
    }
  }

  SeededRandom random_;
  TurnsWorld world_{{.lease_ttl_ms = 400 * 24 * kHourMs}};
  std::multimap<std::int64_t, Grant> running_;  ///< by end, monotonic
  std::map<std::int64_t, int> left_;
  std::map<std::int64_t, double> got_ms_;
  bool is_contended_ = true;
  int jobs_ = 0;
};

// Users and tenants get what their shares promise, within 5 %, while all of them have jobs. Jobs
// take 1 to 30 minutes at random, and nobody knows before how long one takes.
TEST(FairShares, TwentyUsersGetTheirShares) {
  Simulation simulation(7);
  simulation.run();
  EXPECT_EQ(simulation.jobs(), 2'000);
  double worst = 0;
  for (std::int64_t user = 0; user < Simulation::kUsers; ++user) {
    worst = std::max(worst, std::abs(simulation.delivered(user) - 1.0));
    EXPECT_NEAR(simulation.delivered(user), 1.0, 0.05) << "user " << user;
  }
  RecordProperty("worst_deviation_per_mille", static_cast<int>(1'000 * worst));
}

}  // namespace
}  // namespace quasi::server::test
