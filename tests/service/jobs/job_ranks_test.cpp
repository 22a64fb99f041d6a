// Tests an attempt on several slots through a real server and a real worker. The attempt owns all
// slots, as one process or as several MPI ranks. Rank 0 alone has the daemon's socket. Every end of
// the attempt reaches every rank.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "tests/service/support/deck_jobs.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Slots : public testing::Test {
 protected:
  void SetUp() override { service.start_server(); }
  void TearDown() override {
    if (HasFailure())
      std::cerr << service.server().output() << "--- worker\n" << service.worker_log("w") << '\n';
  }
  void start_gpus(int n) {
    const auto file = service.directory() / "devices.toml";
    std::ofstream out(file);
    for (int i = 0; i < n; ++i) out << "[[device]]\nuuid = 'GPU-" << i << "'\n";
    out.close();
    service.start_worker("w", {"--devices", "fake:" + file.string()});
  }
  v1::Job wait_running(const std::string& id) {
    return service.wait_state(id, v1::JOB_STATE_RUNNING);
  }
  /// The processes that the daemon itself has started.
  std::vector<pid_t> engines() { return children_of(service.worker("w").pid()); }

  Service service;
};

v1::JobSpec gpu_job(v1::JobSpec spec, std::uint32_t n_gpus) {
  spec.mutable_resources()->set_gpus(n_gpus);
  return spec;
}

TEST_F(Slots, AnAttemptOfTwoGpusOwnsBothAndTheEngineSeesThem) {
  start_gpus(3);
  const std::string pair = service.submit(gpu_job(hang(false), 2));
  const v1::Job running = wait_running(pair);
  ASSERT_EQ(running.attempt_history_size(), 1);
  const std::set<std::string> owned(running.attempt_history(0).device_ids().begin(),
                                    running.attempt_history(0).device_ids().end());
  ASSERT_EQ(owned.size(), 2u);
  ASSERT_EQ(engines().size(), 1u);
  const std::string environment =
      text_of("/proc/" + std::to_string(engines().front()) + "/environ");
  const auto at = environment.find("CUDA_VISIBLE_DEVICES=");
  ASSERT_NE(at, std::string::npos);
  std::istringstream visible(environment.substr(at + 21, environment.find('\0', at) - at - 21));
  std::set<std::string> seen;
  for (std::string name; std::getline(visible, name, ',');) seen.insert(name);
  EXPECT_EQ(seen, owned);

  // One slot is left. A job of one GPU gets it, and another pair waits until the first pair is
  // free.
  const std::string second = service.submit(gpu_job(hang(false), 2));
  const std::string single = service.submit(gpu_job(sleep_for(0.3), 1));
  const v1::Job alone = service.wait_end(single);
  EXPECT_EQ(alone.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_EQ(alone.attempt_history(0).device_ids_size(), 1);
  EXPECT_FALSE(owned.contains(alone.attempt_history(0).device_ids(0)));
  EXPECT_EQ(service.get(second).state(), v1::JOB_STATE_QUEUED);
  service.cancel(pair);
  EXPECT_EQ(service.wait_end(pair).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(wait_running(second).attempt_history(0).device_ids_size(), 2);
  service.cancel(second);
  service.wait_end(second);
}

TEST_F(Slots, MoreRanksThanGpusAreRefused) {
  v1::JobSpec spec = gpu_job(noop(), 2);
  spec.mutable_resources()->set_ranks(3);
  try {
    service.submit(spec);
    FAIL() << "taken";
  } catch (const std::runtime_error& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("resources.ranks: must not exceed gpus (2), got 3"),
              std::string::npos)
        << refusal.what();
  }
}

#ifndef QUASI_MPIEXEC
TEST_F(Slots, AnEngineWithoutMpiSaysSo) {
  service.start_worker("w");
  v1::JobSpec spec = noop();
  spec.mutable_resources()->set_ranks(2);
  const v1::Job job = service.wait_end(service.submit(spec));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_NE(job.failure().message().find("built without MPI"), std::string::npos)
      << job.failure().message();
}
#else

class RanksOfAJob : public Slots {
 protected:
  void SetUp() override {
    static const int status = std::system(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent=true " QUASI_MPIEXEC
        " -n 2 true > /dev/null 2>&1");
    if (status != 0) GTEST_SKIP() << QUASI_MPIEXEC << " cannot start two processes here";
    setenv("ASAN_OPTIONS", "fast_unwind_on_malloc=0",
           0);  // whole stacks, because lsan.supp names the library
    Slots::SetUp();
    service.start_worker("w");
  }

  static v1::JobSpec shared(v1::JobSpec spec, std::uint32_t n_ranks) {
    spec.mutable_resources()->set_ranks(n_ranks);
    return spec;
  }
  /// Process ids of the ranks of the running attempt, in order of rank.
  std::vector<pid_t> ranks(std::size_t n) {
    std::vector<pid_t> pids;
    EXPECT_TRUE(wait_for([&] { return (pids = ranks_now()).size() == n; }))
        << pids.size() << " ranks";
    return pids;
  }
  std::vector<pid_t> ranks_now() {
    std::vector<std::pair<std::string, pid_t> > found;
    for (const pid_t engine : engines())
      for (const pid_t launcher : children_of(engine))
        for (const pid_t rank : children_of(launcher)) {
          const std::string environment = text_of("/proc/" + std::to_string(rank) + "/environ");
          const auto at = environment.find("OMPI_COMM_WORLD_RANK=");
          if (at != std::string::npos)
            found.emplace_back(environment.substr(at, environment.find('\0', at) - at), rank);
        }
    std::sort(found.begin(), found.end());
    std::vector<pid_t> pids;
    for (const auto& [rank, pid] : found) pids.push_back(pid);
    return pids;
  }
  static bool all_go(const std::vector<pid_t>& pids) {
    return wait_for([&] { return std::all_of(pids.begin(), pids.end(), is_gone); });
  }
  bool kill_one_after_the_other(const std::string& id);
};

/// The newest step among the complete checkpoint files; 0 if there is none.
std::int64_t newest_step(const fs::path& checkpoints) {
  std::int64_t newest = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(checkpoints, none))
    if (const std::string name = entry.path().filename(); name.starts_with("ckpt-"))
      newest = std::max<std::int64_t>(newest, std::stoll(name.substr(5)));
  return newest;
}

/// Number of SOCK_SEQPACKET sockets of a process. Only connections to a daemon have this type.
int packet_sockets_of(pid_t pid) {
  std::set<std::string> packet;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, count, protocol, flags, type, state, inode;
    words >> number >> count >> protocol >> flags >> type >> state >> inode;
    if (type == "0005") packet.insert("socket:[" + inode + "]");
  }
  int n = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", none))
    n += packet.contains(fs::read_symlink(entry.path(), none).string()) ? 1 : 0;
  return n;
}

TEST_F(RanksOfAJob, OnlyRankZeroHoldsTheDaemonsSocket) {
  const std::string id = service.submit(shared(hang(false), 3));
  wait_running(id);
  const auto pids = ranks(3);
  ASSERT_EQ(pids.size(), 3u);
  ASSERT_EQ(engines().size(), 1u);
  EXPECT_TRUE(wait_for([&] {
    return packet_sockets_of(pids[0]) == 1 && packet_sockets_of(engines().front()) == 0;
  })) << packet_sockets_of(pids[0])
      << " in rank 0, " << packet_sockets_of(engines().front())
      << " in the process that the daemon started";
  EXPECT_EQ(packet_sockets_of(pids[1]), 0);
  EXPECT_EQ(packet_sockets_of(pids[2]), 0);
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(all_go(pids));
}

TEST_F(RanksOfAJob, FourPhononsHaveTheBitsOfOneProcess) {
  const v1::JobSpec spec = silicon_4ph(service, "4", "0.5");
  const v1::Job alone = service.wait_end(service.submit(spec));
  ASSERT_EQ(alone.state(), v1::JOB_STATE_SUCCEEDED) << alone.failure().message();
  const v1::Job both = service.wait_end(service.submit(shared(spec, 2)));
  ASSERT_EQ(both.state(), v1::JOB_STATE_SUCCEEDED) << both.failure().message();
  expect_same_results(fetch(service, alone, "result.h5"), fetch(service, both, "result.h5"), 40);
  EXPECT_NE(text_of(fetch(service, both, "summary.json")).find("\"ranks\": 2"), std::string::npos);
}

TEST_F(RanksOfAJob, CancelledAllOfThemStop) {
  const std::string id = service.submit(
      shared(silicon_4ph(service, "11", "0.1"), 2));  // many times longer than stopping it takes
  wait_running(id);
  const auto pids = ranks(2);
  service.wait(id, [](const v1::Job& job) {
    return job.progress().phase() == "scattering 4ph" && job.progress().done() > 0;
  });
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(all_go(pids));
}

// Rank 0 ignores both the message and SIGTERM.
TEST_F(RanksOfAJob, AStubbornOneDiesOfSigkillWithTheOthers) {
  const std::string id = service.submit(shared(hang(true), 2));
  wait_running(id);
  const auto pids = ranks(2);
  service.cancel(id);
  EXPECT_EQ(service.wait_end(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(all_go(pids));
}

TEST_F(RanksOfAJob, WithTheDaemonTheyAllDie) {
  const std::string id = service.submit(shared(hang(true), 2));
  wait_running(id);
  const auto pids = ranks(2);
  ASSERT_EQ(engines().size(), 1u);
  std::vector<pid_t> all = pids;
  all.push_back(engines().front());
  for (const pid_t launcher : children_of(engines().front())) all.push_back(launcher);
  service.kill_worker("w");
  EXPECT_TRUE(all_go(all)) << "a rank, or its launcher, lives on";
}

/// Kills rank 1, rank 0, their launcher and the process that the daemon knows, each after a new
/// checkpoint. @return false if the job ended before
bool RanksOfAJob::kill_one_after_the_other(const std::string& id) {
  for (int n_killed = 0; n_killed < 4; ++n_killed) {
    SCOPED_TRACE("kill " + std::to_string(n_killed + 1));
    const auto attempt = [&](const v1::Job& job) {
      return job.attempt_history_size() > n_killed ? job.attempt_history(n_killed) : v1::Attempt();
    };
    const auto over = [&] { return attempt(service.get(id)).has_ended(); };
    const v1::Job started =
        service.wait(id, [&](const v1::Job& job) { return attempt(job).has_started(); });
    const std::uint64_t fence = attempt(started).fence();
    std::vector<pid_t> pids;
    wait_for([&] { return (pids = ranks_now()).size() == 2 || over(); });
    const fs::path checkpoints =
        service.worker_state("w") / "attempts" / std::to_string(fence) / "ckpt";
    const std::int64_t given =
        started.checkpoint().fence() == fence ? 0 : started.checkpoint().step();
    wait_for([&] { return newest_step(checkpoints) > given || over(); });
    // The ranks are stopped first, so that they cannot end during the search for the others.
    for (const pid_t rank : pids) kill(rank, SIGSTOP);
    std::vector<pid_t> victims = pids;
    for (const pid_t engine : engines()) {
      for (const pid_t launcher : children_of(engine)) victims.push_back(launcher);
      victims.push_back(engine);
    }
    const bool caught = victims.size() == 4;
    const std::size_t order[]{1, 0, 2, 3};
    if (caught) kill(victims[order[n_killed]], SIGKILL);
    for (const pid_t rank : pids) kill(rank, SIGCONT);
    const v1::Job ended =
        service.wait(id, [&](const v1::Job& job) { return attempt(job).has_ended(); });
    if (attempt(ended).outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED) return false;
    EXPECT_EQ(attempt(ended).failure().reason(), v1::FAILURE_REASON_CHILD_CRASHED)
        << attempt(ended).DebugString();
    EXPECT_EQ(attempt(ended).failure().signal(), SIGKILL);
    EXPECT_EQ(ended.checkpoint().fence(), fence)
        << "a checkpoint that was complete when a rank was killed is lost";
    EXPECT_TRUE(all_go(pids));
    if (HasFailure()) return true;
  }
  return true;
}

// Each kill is a crash that leaves no process behind, and the last attempt has the bits of an
// undisturbed one.
TEST_F(RanksOfAJob, KilledOnesAreResumedWithTheSameBits) {
  const v1::JobSpec spec = silicon_4ph(service, "9", "0.1");
  const v1::Job undisturbed = service.wait_end(service.submit(spec));
  ASSERT_EQ(undisturbed.state(), v1::JOB_STATE_SUCCEEDED) << undisturbed.failure().message();
  std::string id;
  bool killed = false;
  for (int jobs = 0; !killed && jobs < 10;
       ++jobs) {  // a job that ended before its kills shows nothing
    id = service.submit(shared(spec, 2));
    killed = kill_one_after_the_other(id);
    ASSERT_FALSE(HasFailure());
  }
  ASSERT_TRUE(killed) << "no job lived to see four kills";
  const v1::Job job = service.wait_end(id);
  ASSERT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.failure().message();
  EXPECT_EQ(job.attempts(), 1u)
      << "attempts that recorded a newer checkpoint count toward no limit";
  expect_same_results(fetch(service, undisturbed, "result.h5"), fetch(service, job, "result.h5"),
                      40);
  EXPECT_TRUE(wait_for([&] { return fs::is_empty(service.worker_state("w") / "attempts"); }));
}

TEST_F(RanksOfAJob, AFailureNamesItsRank) {
  v1::JobSpec spec;
  const auto deck = service.directory() / "deck.toml";
  std::ofstream(deck) << "kind = \"mosfet\"\n[bias]\nvgs = [0.4]\nvds = [0.0]\n"
                         "[run]\nmode = \"equilibrium\"\n";
  add_input(service, &spec, "deck.toml", deck);
  spec.mutable_mosfet()->set_deck("deck.toml");
  const v1::Job job = service.wait_end(service.submit(shared(spec, 2)));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().reason(), v1::FAILURE_REASON_INVALID_INPUT);
  const std::string message = job.failure().message();
  EXPECT_NE(message.find("rank 0: "), std::string::npos) << message;
  EXPECT_NE(message.find("runs in one process, 2 ranks were started"), std::string::npos)
      << message;
}
#endif

}  // namespace
}  // namespace quasi::test
