#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/gw/support/interrupter.hpp"
#include "tests/gw/support/loop_files.hpp"
#include "tests/support/gw_decks.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

// One job on many devices, interrupted or not: the same bits.
namespace quasi::gw {
namespace {

Calculation run(const std::string& text, int devices, Progress& progress,
                const std::filesystem::path& checkpoint = {}) {
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(parse_deck(text, {}, "test", "."),
                         {.team = team,
                          .memory_budget_bytes = std::int64_t{1} << 30,
                          .checkpoint_directory = checkpoint},
                         progress);
}

void expect_same_bits(const Calculation& a, const Calculation& b) {
  ASSERT_EQ(a.epsilon.size(), b.epsilon.size());
  for (std::size_t iq = 0; iq < a.epsilon.size(); ++iq) {
    EXPECT_EQ(a.epsilon[iq].inverse, b.epsilon[iq].inverse) << iq;
    EXPECT_EQ(a.epsilon[iq].epsilon_diagonal, b.epsilon[iq].epsilon_diagonal) << iq;
  }
  ASSERT_EQ(a.quasiparticles.size(), b.quasiparticles.size());
  for (std::size_t i = 0; i < a.quasiparticles.size(); ++i) {
    EXPECT_EQ(a.quasiparticles[i].x_ev, b.quasiparticles[i].x_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].sigma_ev, b.quasiparticles[i].sigma_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].ch_ev, b.quasiparticles[i].ch_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].z, b.quasiparticles[i].z) << i;
  }
  EXPECT_EQ(a.statistics.invalid, b.statistics.invalid);
  ASSERT_EQ(a.matrices.size(), b.matrices.size());
  for (std::size_t i = 0; i < a.matrices.size(); ++i) {
    EXPECT_EQ(a.matrices[i].x_ry, b.matrices[i].x_ry) << i;
    EXPECT_EQ(a.matrices[i].correlation_ry, b.matrices[i].correlation_ry) << i;
  }
  EXPECT_EQ(a.matrix_report.pairs, b.matrix_report.pairs);
}

TEST(DeviceTeam, AnyNumberOfDevicesGivesTheSameBits) {
  SilentProgress silent;
  for (const std::string& deck : {test::kGwGamma, test::kGwGrid, test::kGwMatrix}) {
    const Calculation one = run(deck, 1, silent);
    ASSERT_FALSE(one.quasiparticles.empty());
    ASSERT_EQ(one.matrices.empty(), deck != test::kGwMatrix);
    for (const int devices : {2, 5}) {
      SCOPED_TRACE(std::to_string(devices) + " devices");
      expect_same_bits(one, run(deck, devices, silent));
    }
  }
}

// What parts add up to is the undivided sum, to the rounding of another order of addition.
TEST(DeviceTeam, PartsAddUpToTheWhole) {
  SilentProgress silent;
  for (const std::string& deck : {test::kGwGamma, test::kGwGrid}) {
    const Calculation parts = run(deck, 2, silent);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    const CoulombInteraction coulomb(parts.field.crystal(), parts.field.waves.k_grid, {});
    const auto whole =
        self_energy(parts.field, parts.epsilon, parts.plan.sigma, {coulomb, *kernels, silent});
    ASSERT_EQ(whole.size(), parts.sigma.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::size_t l = 0; l < whole[i].x_ry.size(); ++l) {
        EXPECT_NEAR(whole[i].x_ry[l], parts.sigma[i].x_ry[l], 1e-13);
        EXPECT_NEAR(std::abs(whole[i].ch_ry[0][l] - parts.sigma[i].ch_ry[0][l]), 0.0, 1e-12);
        EXPECT_NEAR(std::abs(whole[i].sx_ry[0][l] - parts.sigma[i].sx_ry[0][l]), 0.0, 1e-12);
      }
  }
}

TEST(DeviceTeam, AFailureOnOneDeviceEndsTheJob) {
  DeviceTeam team(std::vector<Device>(3, find_device("cpu")));
  EXPECT_THROW(team.run(9,
                        [](std::int64_t task, GwKernels&) {
                          if (task == 4) throw NotConverged("task 4");
                        }),
               NotConverged);
}

// One device is slow: the others take its tasks from the end, every task is done once, and
// neighbours stay in order where nobody is idle.
TEST(DeviceTeam, IdleDevicesTakeWhatIsLeftOfOthers) {
  DeviceTeam team(std::vector<Device>(3, find_device("cpu")));
  std::vector<std::atomic<int>> done(24);
  std::atomic<int> n_done{0};
  std::vector<std::vector<std::int64_t>> of_member(3);
  team.run(
      24,
      [&](std::int64_t task, GwKernels& kernels) {
        const auto member = static_cast<std::size_t>(
            std::find(team.members().begin(), team.members().end(), &kernels) -
            team.members().begin());
        // Slow: it is not done with its first before the others are done with their sixteen and one
        // of its own.
        for (int left = 10'000; member == 0 && left > 0 && n_done < 17; --left)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ++n_done;
        ++done[static_cast<std::size_t>(task)];
        of_member[member].push_back(task);
      },
      DeviceTeam::Order::kBalanced);
  for (const auto& count : done) EXPECT_EQ(count, 1);
  EXPECT_LT(of_member[0].size(), 8u) << "of 8 that were its own";
  for (std::size_t i = 0; i < of_member[0].size(); ++i)
    EXPECT_EQ(of_member[0][i], static_cast<std::int64_t>(i));
}

// Ended at every point where it can be, then resumed by another number of devices.
TEST(Checkpoint, AResumedJobGivesTheSameBits) {
  SilentProgress silent;
  for (const std::string& deck : {test::kGwGamma, test::kGwGrid, test::kGwMatrix}) {
    const Calculation whole = run(deck, 1, silent);
    int interruptions = 0;
    for (int after = 1; after < 200; after += 7) {
      quasi::test::TemporaryDirectory directory;
      Interrupter interrupter(after);
      try {
        run(deck, 1, interrupter, directory.path());
        break;
      } catch (const Cancelled&) {
        ++interruptions;
      }
      expect_same_bits(whole, run(deck, 1 + after % 2, silent, directory.path()));
      EXPECT_TRUE(std::filesystem::is_empty(directory.path()))
          << "a finished job leaves no checkpoint";
    }
    EXPECT_GE(interruptions, 2);
  }
}

class LogProgress : public SilentProgress {
 public:
  void log(std::string_view line) override { lines += std::string(line) + "\n"; }
  std::string lines;
};

TEST(Checkpoint, DamagedFilesAndThoseOfOtherInputAreNotUsed) {
  SilentProgress silent;
  const auto interrupted = [&](const std::filesystem::path& directory) {
    Interrupter interrupter(6);
    EXPECT_THROW(run(test::kGwGamma, 1, interrupter, directory), Cancelled);
  };
  const Calculation whole = run(test::kGwGamma, 1, silent);
  for (const std::string damage : {"truncated", "flipped", "other"}) {
    SCOPED_TRACE(damage);
    quasi::test::TemporaryDirectory directory;
    interrupted(directory.path());
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      const auto size = std::filesystem::file_size(entry.path());
      if (damage == "truncated") std::filesystem::resize_file(entry.path(), size - 9);
      if (damage == "flipped") {
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(size / 2));
        file.put('\x5a');
      }
    }
    LogProgress log;
    if (damage == "other") {
      std::string other = test::kGwGamma;
      other.replace(other.find("cutoff_ry = 2.5"), 15, "cutoff_ry = 2.0");
      run(other, 1, log, directory.path());
    } else {
      expect_same_bits(whole, run(test::kGwGamma, 1, log, directory.path()));
    }
    EXPECT_NE(log.lines.find("it is not used"), std::string::npos) << log.lines;
    EXPECT_EQ(log.lines.find("resumed"), std::string::npos) << log.lines;
  }
}

// The real program, killed without warning at ten random moments, then left to finish.
TEST(Checkpoint, KilledEngineResumesToTheSameResult) {
  const auto engine = std::filesystem::canonical("/proc/self/exe").parent_path() / "quasi-engine";
  if (!std::filesystem::exists(engine)) GTEST_SKIP() << engine << " is not built";
  quasi::test::TemporaryDirectory directory;
  const auto deck = directory.path() / "deck.toml";
  std::ofstream(deck) << test::kGwGamma;
  const auto start = [&](const std::string& out) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string output = (directory.path() / out).string();
      if (!freopen("/dev/null", "w", stdout)) _exit(126);
      execl(engine.c_str(), "quasi-engine", "run", "gw", deck.c_str(), "--device", "cpu", "-d",
            output.c_str(), "--quiet", nullptr);
      _exit(127);
    }
    return child;
  };
  const auto result = [&](const std::string& out) {
    std::ifstream in(directory.path() / out / "summary.json");
    auto summary = nlohmann::json::parse(in).at("summary");
    summary.erase("seconds");
    return summary.dump();
  };
  int status = 0;
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(waitpid(start("whole"), &status, 0) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            0);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::mt19937 random(7);
  const auto part_of_a_run = [&](double low, double high) {
    return std::chrono::duration<double>(seconds *
                                         std::uniform_real_distribution<double>(low, high)(random));
  };
  const auto checkpoints = [&] {
    std::map<std::filesystem::path, std::filesystem::file_time_type> files;
    std::error_code none;  // killed before it made the directory
    for (const auto& entry :
         std::filesystem::directory_iterator(directory.path() / "killed" / "checkpoint", none)) {
      std::error_code replaced;
      const auto written = entry.last_write_time(replaced);
      if (entry.path().extension() != ".tmp" && !replaced) files[entry.path()] = written;
    }
    return files;
  };
  int killed = 0, with_checkpoint = 0;
  for (int attempt = 0; killed < 10 && attempt < 40; ++attempt) {
    const auto before = checkpoints();
    const pid_t child = start("killed");
    bool ended = false;
    if (attempt % 2 == 0) {
      std::this_thread::sleep_for(part_of_a_run(0.05, 0.9));
    } else {
      // How long a run takes changes with the machine's load: every other kill follows a new
      // checkpoint.
      while (!ended && checkpoints() == before) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ended = waitpid(child, &status, WNOHANG) == child;
      }
      if (!ended) std::this_thread::sleep_for(part_of_a_run(0.0, 0.05));
    }
    if (!ended) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    if (WIFSIGNALED(status)) {
      ++killed;
      with_checkpoint += checkpoints().empty() ? 0 : 1;
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(result("killed"), result("whole"));
      std::filesystem::remove_all(directory.path() / "killed");
    }
  }
  EXPECT_GE(killed, 10);
  EXPECT_GE(with_checkpoint, 3) << "kills before the first checkpoint show nothing";
  ASSERT_EQ(
      waitpid(start("killed"), &status, 0) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  EXPECT_EQ(result("killed"), result("whole"));
}

// Loops too: killed after a turn, killed again after a turn of the resumed run, then left to
// finish.
TEST(Checkpoint, AKilledLoopResumesToTheSameResult) {
  const auto engine = std::filesystem::canonical("/proc/self/exe").parent_path() / "quasi-engine";
  if (!std::filesystem::exists(engine)) GTEST_SKIP() << engine << " is not built";
  for (const char* loop : {test::kEigenvalueLoop, test::kStateLoop}) {
    SCOPED_TRACE(loop);
    quasi::test::TemporaryDirectory directory;
    const auto deck = test::write_loop_job(directory.path(), loop), log = directory.path() / "log";
    const auto start = [&](const std::string& out) {
      const pid_t child = fork();
      if (child == 0) {
        const std::string output = (directory.path() / out).string();
        if (!freopen("/dev/null", "w", stdout) || !freopen(log.c_str(), "w", stderr)) _exit(126);
        execl(engine.c_str(), "quasi-engine", "run", "gw", deck.c_str(), "--device", "cpu", "-d",
              output.c_str(), nullptr);
        _exit(127);
      }
      return child;
    };
    const auto text_of = [](const std::filesystem::path& path) {
      std::ifstream in(path);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const auto result = [&](const std::string& out) {
      auto summary =
          nlohmann::json::parse(text_of(directory.path() / out / "summary.json")).at("summary");
      summary.erase("seconds");
      return summary.dump();
    };
    int status = 0;
    ASSERT_EQ(
        waitpid(start("whole"), &status, 0) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0)
        << text_of(log);
    ASSERT_NE(text_of(log).find("outer loop, turn 3:"), std::string::npos)
        << "a loop of fewer turns shows nothing";
    for (const char* turn : {"outer loop, turn 1:", "outer loop, turn 2:"}) {
      const pid_t child = start("killed");
      bool ended = false;
      while (!ended && text_of(log).find(turn) == std::string::npos) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ended = waitpid(child, &status, WNOHANG) == child;
      }
      ASSERT_FALSE(ended) << text_of(log);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // into the next turn
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << text_of(log);
    }
    ASSERT_EQ(
        waitpid(start("killed"), &status, 0) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0)
        << text_of(log);
    EXPECT_NE(text_of(log).find("outer loop: taken up after turn"), std::string::npos)
        << text_of(log);
    EXPECT_EQ(result("killed"), result("whole"));
  }
}

}  // namespace
}  // namespace quasi::gw
