// Tests a four-phonon job whose engine is killed many times.

#include <fcntl.h>
#include <gtest/gtest.h>
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
#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"

extern char** environ;

namespace quasi {
namespace {

/// Starts quasi-engine run thermal on a mesh of 22 tiles (or blocks of draws), with a checkpoint
/// after each.
pid_t start(const std::filesystem::path& output, const std::vector<std::string>& settings) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  std::vector<std::string> words{QUASI_ENGINE, "run",     "thermal", deck,           "--device",
                                 "cpu",        "--quiet", "-d",      output.string()};
  for (const char* setting : {"four_phonon=.true.", "checkpoint_interval_s=0"})
    words.insert(words.end(), {"--set", setting});
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
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

/// The newest checkpoint of an attempt; empty if there is none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& output) {
  std::filesystem::path newest;
  std::int64_t step = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(output / "checkpoint", none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("ckpt-") || name.ends_with(".tmp")) continue;
    if (const std::int64_t at = std::stoll(name.substr(5)); at > step) {
      step = at;
      newest = entry.path();
    }
  }
  return newest;
}

struct KilledJob {
  const char* name;
  std::vector<std::string> settings;
  int kills;
  double latest;  ///< latest moment of a kill, relative to the time of an undisturbed run
};

/// Starts attempts at one job and kills each. Every attempt has a directory of its own that
/// contains only the newest checkpoint, as with a worker.
class KilledAttempts {
 public:
  KilledAttempts(const KilledJob& job, double whole_s, unsigned seed)
      : job_(job), random_(seed), moment_s_(0.0, job.latest * whole_s) {}

  /// Kills the number of attempts that the job states. The kills alternate between a random moment
  /// and a moment after a new checkpoint. An attempt that ended before its kill shows nothing; then
  /// all attempts begin again with shorter times.
  void run() {
    int too_late = 0;
    for (int i = 0; i < job_.kills; ++i) {
      const int status = start_and_kill(i);
      if (WIFSIGNALED(status)) {
        note_kill(i);
        continue;
      }
      ASSERT_EQ(status, 0);
      ASSERT_LT(++too_late, 10) << "the job is too short to be killed";
      for (const auto& left : std::filesystem::directory_iterator(directory_.path()))
        std::filesystem::remove_all(left);
      checkpoint_.clear();
      killed_ = resumed_ = 0;
      haste_ *= 0.5;
      i = -1;
    }
  }
  /// The directory of a new attempt, with the newest checkpoint.
  std::filesystem::path next_attempt(int i) const {
    const std::filesystem::path attempt = directory_.path() / std::to_string(i);
    std::filesystem::create_directories(attempt / "checkpoint");
    if (!checkpoint_.empty())
      std::filesystem::copy_file(checkpoint_, attempt / "checkpoint" / checkpoint_.filename());
    return attempt;
  }
  int killed() const { return killed_; }
  /// Number of kills that followed a new checkpoint.
  int resumed() const { return resumed_; }

 private:
  int start_and_kill(int i) {
    const auto attempt = next_attempt(i);
    const pid_t pid = start(attempt, job_.settings);
    int status = 0;
    if (i % 2 == 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(haste_ * moment_s_(random_)));
    } else {
      // The length of a run changes with the load of the machine, so every other kill follows a new
      // checkpoint.
      while (newest_checkpoint(attempt).filename() == checkpoint_.filename()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (waitpid(pid, &status, WNOHANG) == pid) return status;
      }
    }
    kill(pid, SIGKILL);
    return wait_for(pid);
  }
  void note_kill(int i) {
    ++killed_;
    const auto newest = newest_checkpoint(directory_.path() / std::to_string(i));
    if (newest.empty() || newest.filename() == checkpoint_.filename()) return;
    checkpoint_ = newest;
    ++resumed_;
  }

  const KilledJob& job_;
  test::TemporaryDirectory directory_;
  std::mt19937 random_;
  std::uniform_real_distribution<double> moment_s_;
  double haste_ = 1.0;
  int killed_ = 0;
  int resumed_ = 0;
  std::filesystem::path checkpoint_;
};

void expect_same_bits(const std::filesystem::path& one, const std::filesystem::path& other) {
  const H5Reader a(one);
  const H5Reader b(other);
  for (const char* name :
       {"/rates/4ph_total", "/rates/4ph_recombination_normal", "/rates/4ph_redistribution_umklapp",
        "/rates/4ph_splitting_normal", "/phase_space/4ph_weighted_redistribution",
        "/phase_space/4ph_processes_redistribution", "/kappa/rta", "/kappa/converged"}) {
    EXPECT_FALSE(a.doubles(name).empty());
    EXPECT_EQ(a.doubles(name), b.doubles(name)) << name;
  }
  if (a.has("/rates/4ph_splitting_error")) {
    EXPECT_EQ(a.doubles("/rates/4ph_splitting_error"), b.doubles("/rates/4ph_splitting_error"));
  }
}

class EngineKill : public testing::TestWithParam<KilledJob> {};

// A job that is killed many times gives every number of an undisturbed run.
TEST_P(EngineKill, SameBitsHoweverOften) {
  const KilledJob& job = GetParam();
  const test::TemporaryDirectory undisturbed;
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(wait_for(start(undisturbed.path(), job.settings)), 0);
  const double whole_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_FALSE(std::filesystem::exists(undisturbed.path() / "checkpoint"))
      << "a finished job leaves checkpoints, or their empty folder";

  const char* given = std::getenv("QUASI_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  std::printf("    QUASI_SEED=%u; an undisturbed run takes %.2f s\n", seed, whole_s);
  KilledAttempts attempts(job, whole_s, seed);
  ASSERT_NO_FATAL_FAILURE(attempts.run());
  std::printf("    %d of %d attempts killed, %d of them after a new checkpoint\n",
              attempts.killed(), job.kills, attempts.resumed());
  EXPECT_EQ(attempts.killed(), job.kills) << "the job is too short to be killed";
  EXPECT_GE(attempts.resumed(), job.kills / 2);
  const auto last = attempts.next_attempt(job.kills);
  ASSERT_EQ(wait_for(start(last, job.settings)), 0);
  expect_same_bits(undisturbed.path() / "result.h5", last / "result.h5");
}

/// True if a case of a ladder has a checkpoint.
bool has_checkpoint(const std::filesystem::path& output, const std::string& name) {
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(output / "checkpoint" / name, none)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with("ckpt-") && !file.ends_with(".tmp")) return true;
  }
  return false;
}

// A job with renormalised phonons keeps checkpoints of every case. It is killed in each of them,
// and gives every number of an undisturbed run. A finished job leaves no checkpoint.
TEST(EngineKillOfALadder, GivesTheSameBitsAndLeavesNoCheckpoint) {
  const std::vector<std::string> settings{"ngrid=5 5 5", "scalebroad=0.2", "renormalise=T",
                                          "four_phonon_iteration=T", "eps=1e-9"};
  const test::TemporaryDirectory undisturbed, killed;
  ASSERT_EQ(wait_for(start(undisturbed.path(), settings)), 0);
  EXPECT_FALSE(std::filesystem::exists(undisturbed.path() / "checkpoint"));
  for (const char* name : {"bare", "renormalised_300K"}) {
    const pid_t pid = start(killed.path(), settings);
    int status = 0;
    while (!has_checkpoint(killed.path(), name)) {
      ASSERT_EQ(waitpid(pid, &status, WNOHANG), 0) << "the job ended before its checkpoint";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(pid, SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(wait_for(pid))) << "the job ended before it was killed";
    ASSERT_TRUE(has_checkpoint(killed.path(), name));
  }
  ASSERT_EQ(wait_for(start(killed.path(), settings)), 0);
  for (const char* name : {"bare", "renormalised_300K"})
    expect_same_bits(undisturbed.path() / name / "result.h5", killed.path() / name / "result.h5");
  EXPECT_FALSE(std::filesystem::exists(killed.path() / "checkpoint"));
}

TEST(EngineKillOfAStudy, AFinishedStudyLeavesNoCheckpoint) {
  const test::TemporaryDirectory output;
  ASSERT_EQ(wait_for(start(output.path(), {"ngrid=5 5 5", "four_phonon=F", "convergence_study=T"})),
            0);
  EXPECT_TRUE(H5Reader(output.path() / "result.h5").has("/convergence/kappa_by_mesh"));
  EXPECT_FALSE(std::filesystem::exists(output.path() / "checkpoint"));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, EngineKill,
    testing::Values(
        KilledJob{"Exact", {"ngrid=7 7 7", "scalebroad=0.1"}, 10, 0.06},
        KilledJob{"Iterated",
                  {"ngrid=5 5 5", "scalebroad=0.2", "four_phonon_iteration=T", "eps=1e-9"},
                  6,
                  0.1},
        KilledJob{"IteratedAboveTheLimit",
                  {"ngrid=4 4 4", "scalebroad=0.2", "four_phonon_iteration=T", "eps=1e-9",
                   "checkpoint_limit_mib=0"},
                  4,
                  0.1},
        KilledJob{"SampledByWeight", {"ngrid=4 4 4", "target_kappa_error=0.002"}, 4, 0.1},
        KilledJob{"SampledUniformly",
                  {"ngrid=3 3 3", "sampling=uniform", "num_sample_process_4ph=100000"},
                  4,
                  0.1}),
    [](const testing::TestParamInfo<KilledJob>& job) { return std::string(job.param.name); });

}  // namespace
}  // namespace quasi
