#include <gtest/gtest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "tests/support/temporary_directory.hpp"
#include "workers/io/hdf5.hpp"

extern char** environ;

namespace quasi::mosfet {
namespace {

using namespace std::chrono_literals;

std::filesystem::path engine() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "quasi-engine";
}

pid_t start(const std::filesystem::path& deck, const std::filesystem::path& output) {
  std::vector<std::string> words{engine().string(), "run",      "mosfet",
                                 deck.string(),     "--device", "cpu",
                                 "--quiet",         "-d",       output.string()};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::set<std::string> rows(const std::filesystem::path& csv) {
  std::set<std::string> out;
  std::istringstream in(file_text(csv));
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) out.insert(line);
  return out;
}

// Ten kills at random moments of a sweep. No finished point is lost or changed, and the final
// result has the bits of an undisturbed run. The engine lives a different time before each kill, so
// that kills hit the start, a step and the writing of a checkpoint.
TEST(KilledSweep, LosesNothingAndEndsWithTheSameBits) {
  ASSERT_TRUE(std::filesystem::exists(engine())) << engine() << ": build quasi-engine first";
  const test::TemporaryDirectory directory;
  const auto deck = directory.path() / "deck.toml";
  std::ofstream(deck) << "kind = \"mosfet\"\nparameters = \"paper\"\ncheckpoint_interval_s = "
                         "0.0\n[mesh]\nnx = 33\nnz = "
                         "17\nsubbands = 1\nnw = 12\nnphi "
                         "= 8\nwmax_ev = 0.9\n"
                         "[bias]\nvgs = [0.4, 0.6]\nvds = [0.1, 0.2, 0.3]\n"
                         "[run]\nt_end_fs = 14.0\nsteady_tol = 0.2\nwindow_fs = 5.0\nrefresh_steps "
                         "= 10\n";
  const auto expected = directory.path() / "expected";
  int status = 0;
  waitpid(start(deck, expected), &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);

  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> life_ms(20, 350);
  int kills = 0;
  for (int sweep = 0; kills < 10; ++sweep) {
    ASSERT_LT(sweep, 10);
    const auto output = directory.path() / ("killed" + std::to_string(sweep));
    std::set<std::string> finished;
    for (bool done = false; !done;) {
      const pid_t engine_pid = start(deck, output);
      if (kills < 10) {
        const auto deadline =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(life_ms(random));
        while (std::chrono::steady_clock::now() < deadline &&
               waitpid(engine_pid, &status, WNOHANG) == 0)
          std::this_thread::sleep_for(1ms);
        if (kill(engine_pid, 0) == 0) {
          kill(engine_pid, SIGKILL);
          ++kills;
          waitpid(engine_pid, &status, 0);
          const auto now = rows(output / "iv.csv");
          for (const std::string& row : finished) EXPECT_TRUE(now.contains(row)) << row;
          finished.insert(now.begin(), now.end());
          continue;
        }
      } else {
        waitpid(engine_pid, &status, 0);
      }
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      done = true;
    }
    const auto last = rows(output / "iv.csv");
    for (const std::string& row : finished) EXPECT_TRUE(last.contains(row)) << row;
    EXPECT_EQ(file_text(output / "iv.csv"), file_text(expected / "iv.csv"));
    const H5Reader a(output / "result.h5"), b(expected / "result.h5");
    for (int point = 0; point < 6; ++point)
      for (const char* name :
           {"potential", "density", "subband_energy", "current_x", "history", "terminals"}) {
        const std::string path = "/points/" + std::to_string(point) + "/" + name;
        EXPECT_EQ(a.doubles(path), b.doubles(path)) << path;
      }
  }
}

}  // namespace
}  // namespace quasi::mosfet
