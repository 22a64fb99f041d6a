// The engine killed again and again in the middle of a four-phonon job.

#include <gtest/gtest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "workers/io/hdf5.hpp"

extern char** environ;

namespace quasi {
namespace {

constexpr int kKills = 10;

/// quasi-engine run thermal on a mesh of 14 tiles, a checkpoint after each.
pid_t start(const std::filesystem::path& output) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  std::vector<std::string> words{QUASI_ENGINE, "run", "thermal", deck, "--device", "cpu", "--quiet", "-d", output.string()};
  for (const char* setting : {"four_phonon=.true.", "ngrid=6 6 6", "scalebroad=0.5", "checkpoint_interval_s=0"}) {
    words.emplace_back("--set");
    words.emplace_back(setting);
  }
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, QUASI_ENGINE, &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  EXPECT_EQ(failure, 0);
  return pid;
}

int wait_for(pid_t pid) {
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// Ten times SIGKILL at a random moment, each attempt going on from the last one's checkpoint; then one that
// is left to finish. Every number is that of an undisturbed run.
TEST(EngineKill, SameBitsAfterTenKills) {
  const test::TemporaryDirectory undisturbed, disturbed;
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(wait_for(start(undisturbed.path())), 0);
  const double whole_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  const char* given = std::getenv("QUASI_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : 20261121u;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> moment_s(0.0, 0.25 * whole_s);
  int killed = 0;
  const auto checkpoint = disturbed.path() / "checkpoint" / "scattering_4ph.ckpt";
  std::vector<std::filesystem::file_time_type> progress;
  for (int i = 0; i < kKills; ++i) {
    const pid_t pid = start(disturbed.path());
    std::this_thread::sleep_for(std::chrono::duration<double>(moment_s(random)));
    kill(pid, SIGKILL);
    const int status = wait_for(pid);
    if (WIFSIGNALED(status)) ++killed;
    if (std::filesystem::exists(checkpoint) &&
        (progress.empty() || progress.back() != std::filesystem::last_write_time(checkpoint)))
      progress.push_back(std::filesystem::last_write_time(checkpoint));
  }
  std::printf("    seed %u: an undisturbed run takes %.2f s; %d of %d attempts killed, %zu of them after a new checkpoint\n",
              seed, whole_s, killed, kKills, progress.size());
  EXPECT_GE(killed, kKills / 2) << "the job is too short to be killed";
  EXPECT_GE(progress.size(), 1u);
  ASSERT_EQ(wait_for(start(disturbed.path())), 0);

  const H5Reader a(undisturbed.path() / "result.h5");
  const H5Reader b(disturbed.path() / "result.h5");
  for (const char* name : {"/rates/4ph_total", "/rates/4ph_recombination_normal", "/rates/4ph_redistribution_umklapp",
                           "/rates/4ph_splitting_normal", "/phase_space/4ph_weighted_redistribution",
                           "/phase_space/4ph_processes_redistribution", "/kappa/rta", "/kappa/converged"}) {
    EXPECT_FALSE(a.doubles(name).empty());
    EXPECT_EQ(a.doubles(name), b.doubles(name)) << name;
  }
}

}  // namespace
}  // namespace quasi
