#pragma once

// Jobs of the engine on several processes, started by the MPI launcher.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace quasi::test {

using Words = std::vector<std::string>;

/// Words of `quasi-engine run` of a deck into `output` on the CPU.
Words engine(const std::string& kind, const std::filesystem::path& deck,
             const std::filesystem::path& output, const Words& settings = {});

/// Words of a run of the silicon example with four-phonon scattering and further settings.
Words silicon(const std::filesystem::path& output, const Words& more = {});

/// Writes deck.toml into the folder `place`, which is made.
std::filesystem::path write_deck(const std::filesystem::path& place, const std::string& text);

/// Writes a sweep of six bias points: three chains of two points in steady mode, six chains in
/// transient mode, which writes distributions too. In steady mode one of four ranks has no chain.
std::filesystem::path write_sweep(const std::filesystem::path& place, const std::string& mode);

/// Data sets that a thermal, a gw and a mosfet result are compared by.
extern const Words kThermal, kGw;
Words mosfet_datasets();

/// Two gw decks: one k-point, and a grid.
extern const std::string kGwDecks[2];

/// A started job and its log.
struct Job {
  pid_t pid = -1;
  std::filesystem::path log;
};

/// Programs of one job, each with its number of ranks.
using Programs = std::vector<std::pair<int, Words>>;

/// Starts programs under the launcher, joined by ":". A first number of 0 starts the program
/// without a launcher.
Job start(const Programs& programs, const std::filesystem::path& log);

/// Waits for a job and returns its exit status, 128 + n after signal n. A job that hangs is killed
/// and fails the test.
int wait_for(const Job& job);

/// Starts programs and waits for them.
int run(const Programs& programs, const std::filesystem::path& log);

/// The whole text of a file; empty if it cannot be read.
std::string text_of(const std::filesystem::path& path);

/// Expects that result.h5 of two runs holds equal, non-empty data sets.
void expect_same_bits(const std::filesystem::path& one, const std::filesystem::path& other,
                      const Words& datasets);

/// Process ids of the ranks of a job whose command line names `output`, ordered by rank.
std::vector<pid_t> ranks_of(const std::filesystem::path& output);

/// True if `output` holds a finished checkpoint file.
bool has_checkpoint(const std::filesystem::path& output);

/// Sends a signal to all ranks.
void signal_all(const std::vector<pid_t>& ranks, int number);

/// Only a test that hangs waits for so long. No test concludes anything from the time that a job
/// takes.
inline constexpr std::chrono::seconds kHang{200};

/// Waits until `ready` holds; false after kHang.
template <typename Ready>
bool eventually(const Ready& ready) {
  for (const auto until = std::chrono::steady_clock::now() + kHang;
       std::chrono::steady_clock::now() < until;) {
    if (ready()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

/// A job whose ranks are all stopped by SIGSTOP.
struct HeldJob {
  Job job;
  std::vector<pid_t> ranks;  ///< empty: no job was caught in time, which fails the test
};

/// Starts a job of n ranks, and stops all of them once `ready` holds and before a result is
/// written. A job that ends too early, as on a slow machine, is started anew from nothing.
HeldJob hold(int n, const Words& words, const std::filesystem::path& output,
             const std::filesystem::path& log, const std::function<bool()>& ready);

/// Suite of jobs over ranks. It skips where the launcher cannot start even `true` twice.
class Ranks : public testing::Test {
 protected:
  void SetUp() override;
};

}  // namespace quasi::test
