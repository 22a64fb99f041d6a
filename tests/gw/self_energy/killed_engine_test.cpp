// The real program, killed without warning and started again, gives the result of an undisturbed
// run.

#include <gtest/gtest.h>

#include <algorithm>
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
#include "workers/io/hdf5.hpp"

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

/// First orders by four parts of the bands, in the displacements of two of eight atoms.
const std::string kDisplacements = R"(
kind = "gw"
checkpoint_interval_s = 0.0
[meanfield]
source = "epm"
cell = "cubic"
cutoff_ry = 4.0
bands = 140
[epsilon]
cutoff_ry = 2.0
[sigma]
band_min = 9
band_max = 19
[perturbation]
atoms = [1, 2]
)";

/// Number of parts of the first order of Σ that the checkpoint of a folder keeps.
std::size_t kept_parts(const EngineJob& job, const std::string& folder) {
  const std::string name = "first order of Σ ";
  std::size_t most = 0;
  for (const auto& [path, written] : job.checkpoints(folder)) {
    std::ifstream in(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    std::size_t parts = 0;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
      ++parts;
    most = std::max(most, parts);
  }
  return most;
}

/// Starts the engine and kills it once its checkpoint keeps more parts of the first order than
/// `before`. Returns false if the engine ended before.
bool killed_between_parts(const EngineJob& job, std::size_t before) {
  EngineProcess engine = job.start("killed");
  while (!engine.has_ended() && kept_parts(job, "killed") <= before)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return engine.kill_and_wait();
}

// The step of the first order of Σ is killed between its parts, once more after it was resumed,
// and then left to finish. The elements have the bits of the undisturbed run.
TEST(Checkpoint, AKilledFirstOrderResumesToTheSameBits) {
  if (!fs::exists(engine_program())) GTEST_SKIP() << engine_program() << " is not built";
  quasi::test::TemporaryDirectory directory;
  const EngineJob job{directory.path(), directory.path() / "deck.toml"};
  std::ofstream(job.deck) << kDisplacements;
  ASSERT_EQ(job.run("whole"), 0) << job.log_text();
  // On a busy machine the engine may end before this process sees its checkpoint. Then it starts
  // anew.
  std::size_t first = 0, second = 0;
  for (int attempt = 0; second <= first && attempt < 10; ++attempt) {
    fs::remove_all(job.directory / "killed");
    if (!killed_between_parts(job, 0)) continue;
    first = kept_parts(job, "killed");
    second = killed_between_parts(job, first) ? kept_parts(job, "killed") : 0;
  }
  ASSERT_GE(first, 1u) << job.log_text();
  ASSERT_GT(second, first) << job.log_text();
  ASSERT_EQ(job.run("killed"), 0) << job.log_text();
  EXPECT_NE(job.log_text().find("resumed from"), std::string::npos) << job.log_text();
  EXPECT_EQ(job.result("killed"), job.result("whole"));
  const H5Reader whole(job.directory / "whole" / "result.h5"),
      killed(job.directory / "killed" / "result.h5");
  for (const char* name : {"mean_field", "sigma_bra", "sigma_ket", "sigma_fixed_energies"}) {
    const std::string dataset = std::string("/perturbations/") + name;
    EXPECT_EQ(whole.doubles(dataset), killed.doubles(dataset)) << name;
  }
}

}  // namespace
}  // namespace quasi::gw
