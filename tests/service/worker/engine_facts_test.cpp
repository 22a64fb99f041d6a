// Tests what a daemon asks of its programs at its start: scripts stand for engine and cage.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/daemon/devices/engine_facts.hpp"
#include "workers/daemon/error.hpp"

namespace quasi::test {
namespace {

class EngineFactsOf : public testing::Test {
 protected:
  std::filesystem::path script(const std::string& body) {
    const auto path = folder_.path() / ("program" + std::to_string(++scripts_));
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  template <class Ask>
  static std::string refusal(const Ask& ask) {
    try {
      ask();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  static void expect_says(const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }

  TemporaryDirectory folder_;
  int scripts_ = 0;
};

TEST_F(EngineFactsOf, AnEngineAreItsKindsAndItsReasonAgainstCuda) {
  const auto facts = ask_engine(
      script("[ \"$*\" = 'devices --json' ] && echo '{\"kinds\":[\"gw\",7],\"cuda_absence\":\"no "
             "driver\"}'"));
  EXPECT_EQ(facts.kinds, std::vector<std::string>{"gw"});
  EXPECT_FALSE(facts.cuda);
  EXPECT_EQ(facts.cuda_absence, "no driver");
  EXPECT_TRUE(ask_engine(script("echo '{\"kinds\":[]}'")).cuda);
}

TEST_F(EngineFactsOf, AProgramThatIsNoEngineIsRefused) {
  expect_says(refusal([&] { ask_engine(folder_.path() / "absent"); }), "cannot be executed");
  const auto plain = folder_.path() / "plain";
  std::ofstream(plain) << "no program";
  std::filesystem::permissions(plain, std::filesystem::perms::owner_all);
  expect_says(refusal([&] { ask_engine(plain); }), "cannot be started");
  for (const char* answer : {"echo hello", "echo '{}'", "echo '{\"kinds\":3}'"})
    expect_says(refusal([&] { ask_engine(script(answer)); }), "lists no kind of job");
  const std::string why = refusal([&] { ask_engine(script("exit 3")); });
  expect_says(why, "gives no valid answer to 'devices --json'");
  expect_says(why, "set 'engine' to the path of quasi-engine");
}

// A self-test sees its own GPU alone.
TEST_F(EngineFactsOf, ASelfTestOfAGpuIsItsProgramOrTheEngine) {
  const auto passes = script("[ \"$CUDA_VISIBLE_DEVICES\" = GPU-7 ]");
  EXPECT_EQ(test_device("", passes, "GPU-7"), "");
  expect_says(test_device("", passes, "GPU-8"), "gives no valid answer");
  EXPECT_EQ(test_device(script("echo '{\"cuda_absence\":\"\"}'"), "", "GPU-7"), "");
  EXPECT_EQ(test_device(script("echo '{\"cuda_absence\":\"the kernel hangs\"}'"), "", "GPU-7"),
            "the kernel hangs");
  EXPECT_EQ(test_device(script("echo nothing"), "", "GPU-7"), "the engine gave no list of devices");
}

TEST_F(EngineFactsOf, ACageNamesItsWalls) {
  const auto facts = ask_cage(
      script("[ \"$*\" = --probe ] && echo '{\"whole\":false,\"summary\":\"no namespaces\"}'"));
  EXPECT_FALSE(facts.whole);
  EXPECT_EQ(facts.summary, "no namespaces");
  expect_says(refusal([&] { ask_cage(folder_.path() / "absent"); }), "set 'cage' to false");
  for (const char* answer : {"echo hello", "echo '{}'", "echo '{\"whole\":1}'"})
    expect_says(refusal([&] { ask_cage(script(answer)); }), "does not name its walls");
}

}  // namespace
}  // namespace quasi::test
