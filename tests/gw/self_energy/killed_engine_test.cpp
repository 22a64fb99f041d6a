// The real program, killed without warning and started again, gives the result of an undisturbed
// run.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "tests/gw/support/engine_job.hpp"
#include "tests/gw/support/loop_files.hpp"
#include "tests/support/gw_decks.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::gw {
namespace {

using test::Checkpoints;
using test::engine_program;
using test::EngineJob;
using test::EngineProcess;
namespace fs = std::filesystem;

/// Waits until the checkpoint of a folder is no longer `before`, or the engine ends.
void wait_for_checkpoint(const EngineJob& job, const std::string& folder, const Checkpoints& before,
                         EngineProcess& engine) {
  while (!engine.has_ended() && job.checkpoints(folder) == before)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The engine is killed ten times, then left to finish. The time of a run changes with the load of
// the machine, so that every other kill comes at a random time and the others follow a new
// checkpoint. A run that ends before its kill has the same result and does not count.
TEST(Checkpoint, KilledEngineResumesToTheSameResult) {
  if (!fs::exists(engine_program())) GTEST_SKIP() << engine_program() << " is not built";
  quasi::test::TemporaryDirectory directory;
  const EngineJob job{directory.path(), directory.path() / "deck.toml"};
  std::ofstream(job.deck) << quasi::test::kGwGamma;
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(job.run("whole"), 0) << job.log_text();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::mt19937 random(7);
  const auto part_of_a_run = [&](double low, double high) {
    return std::chrono::duration<double>(seconds *
                                         std::uniform_real_distribution<double>(low, high)(random));
  };
  int killed = 0, with_checkpoint = 0;
  for (int attempt = 0; killed < 10 && attempt < 100; ++attempt) {
    const bool at_random_time = attempt % 2 == 0;
    const Checkpoints before = job.checkpoints("killed");
    EngineProcess engine = job.start("killed");
    if (at_random_time) {
      std::this_thread::sleep_for(part_of_a_run(0.05, 0.9));
    } else {
      wait_for_checkpoint(job, "killed", before, engine);
      if (!engine.has_ended()) std::this_thread::sleep_for(part_of_a_run(0.0, 0.05));
    }
    if (engine.kill_and_wait()) {
      ++killed;
      with_checkpoint += job.checkpoints("killed").empty() ? 0 : 1;
    } else {
      ASSERT_EQ(engine.exit_code(), 0) << job.log_text();
      EXPECT_EQ(job.result("killed"), job.result("whole"));
      fs::remove_all(job.directory / "killed");
    }
  }
  EXPECT_GE(killed, 10);
  EXPECT_GE(with_checkpoint, 3) << "kills before the first checkpoint show nothing";
  ASSERT_EQ(job.run("killed"), 0) << job.log_text();
  EXPECT_EQ(job.result("killed"), job.result("whole"));
}

/// An outer loop that goes on from a checkpoint has this line in its log.
constexpr const char* kResumed = "outer loop: taken up after turn";

/// Starts the engine and kills it in the iteration that follows a line of its log. Returns false if
/// the engine ended before.
bool killed_after(const EngineJob& job, const std::string& line) {
  EngineProcess engine = job.start("killed");
  while (!engine.has_ended() && job.log_text().find(line) == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // The next iteration begins.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return engine.kill_and_wait();
}

// Outer loops are killed in two iterations, the second one of a resumed run, and then left to
// finish.
TEST(Checkpoint, AKilledLoopResumesToTheSameResult) {
  if (!fs::exists(engine_program())) GTEST_SKIP() << engine_program() << " is not built";
  for (const char* loop : {quasi::test::kEigenvalueLoop, quasi::test::kStateLoop}) {
    SCOPED_TRACE(loop);
    quasi::test::TemporaryDirectory directory;
    const EngineJob job{directory.path(), quasi::test::write_loop_job(directory.path(), loop)};
    ASSERT_EQ(job.run("whole"), 0) << job.log_text();
    ASSERT_NE(job.log_text().find("outer loop, turn 3:"), std::string::npos)
        << "a loop of fewer iterations shows nothing";
    // On a busy machine the engine may end before this process sees its line, or be killed before
    // its checkpoint is written. Then it starts anew.
    bool killed = false;
    for (int attempt = 0; !killed && attempt < 10; ++attempt) {
      fs::remove_all(job.directory / "killed");
      killed = killed_after(job, "outer loop, turn 1:") && killed_after(job, kResumed);
    }
    ASSERT_TRUE(killed) << job.log_text();
    ASSERT_EQ(job.run("killed"), 0) << job.log_text();
    EXPECT_NE(job.log_text().find(kResumed), std::string::npos) << job.log_text();
    EXPECT_EQ(job.result("killed"), job.result("whole"));
  }
}

}  // namespace
}  // namespace quasi::gw
