// Tests the promise of the cage: an engine inside reaches its own files and devices and nothing
// else (docs/reference/operations.md, "The cage around engines"). A real process inside the real
// quasi-cage makes every attempt. Attempts that an ordinary process of the same user would manage
// are also made outside, so that an attempt that never works fails the test.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "tests/cage/escapes.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

/// Runs a program, returns its output and writes its exit status to `status`.
std::string output_of(const std::string& command, int* status) {
  std::string output;
  std::array<char, 4096> bytes{};
  FILE* pipe = popen(command.c_str(), "r");
  while (const std::size_t size = fread(bytes.data(), 1, bytes.size(), pipe))
    output.append(bytes.data(), size);
  *status = pclose(pipe);
  return output;
}

/// The folder of an attempt, the folder of another user, two sockets and a process of the same
/// user.
class CageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The leak sanitizer traces its own process, which no process in a cage may do.
    ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    prison_.attempt = directory_.path() / "attempt";
    prison_.foreign = directory_.path() / "foreign";
    for (const auto& folder : {prison_.attempt / "in", prison_.attempt / "out", prison_.foreign})
      fs::create_directories(folder);
    for (const char* name : {"secret", "spare", "second"})
      std::ofstream(prison_.foreign / name) << "foreign";
    std::ofstream(prison_.attempt / "in/deck") << "deck";
    fs::create_symlink(prison_.foreign / "secret", prison_.attempt / "in/link");
    listen_unix();
    listen_tcp();
    prison_.victim = fork();
    if (prison_.victim == 0)
      for (;;) pause();
  }
  void TearDown() override {
    kill(prison_.victim, SIGKILL);
    waitpid(prison_.victim, nullptr, 0);
    for (const int descriptor : {unix_, tcp_}) close(descriptor);
    fs::remove("/tmp/attempt");
    fs::remove("/dev/shm/quasi-escape");
  }

  /// Maps "need NAME" and "escape NAME" to true if it was reached.
  std::map<std::string, bool> try_all(bool caged) {
    std::ostringstream command;
    command << "cd '" << prison_.attempt.string() << "' && exec ";
    if (caged)
      command << QUASI_CAGE << " --read '" << fs::path(PRISONER).parent_path().string()
              << "' --read '" << (prison_.attempt / "in").string() << "' --write '"
              << (prison_.attempt / "out").string() << "' -- ";
    command << PRISONER << " '" << prison_.attempt.string() << "' '" << prison_.foreign.string()
            << "' " << prison_.tcp_port << ' ' << prison_.victim << (caged ? " caged" : " free");
    int status = 0;
    std::istringstream lines(output_of(command.str(), &status));
    EXPECT_EQ(status, 0) << command.str();
    std::map<std::string, bool> reached;
    bool ended = false;
    for (std::string line; std::getline(lines, line);) {
      const auto colon = line.rfind(": ");
      if (colon == std::string::npos)
        ended = ended || line == "end";
      else
        reached[line.substr(0, colon)] = line.substr(colon + 2) == "reached";
    }
    EXPECT_TRUE(ended) << "the process inside ended before its last attempt";
    return reached;
  }

  Prison prison_;

 private:
  void listen_unix() {
    unix_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (prison_.foreign / "socket").c_str(),
                 sizeof address.sun_path - 1);
    ASSERT_EQ(bind(unix_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(unix_, 8), 0);
  }
  void listen_tcp() {
    tcp_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(bind(tcp_, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(tcp_, 8), 0);
    ASSERT_EQ(getsockname(tcp_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    prison_.tcp_port = ntohs(address.sin_port);
  }

  TemporaryDirectory directory_;
  int unix_ = -1, tcp_ = -1;
};

bool probe_says(const std::string& words) {
  int status = 0;
  return output_of(std::string(QUASI_CAGE) + " --probe", &status).find(words) != std::string::npos;
}
bool whole_cage_is_possible() { return probe_says("\"whole\": true"); }

TEST_F(CageTest, EscapesFail) {
  if (!whole_cage_is_possible())
    GTEST_SKIP() << "this system does not permit the whole cage: quasi-cage --probe";
  EXPECT_GE(escapes().size(), 40U);
  const bool has_own_root = probe_says("mounts closed");
  std::cout << escapes().size() << " escapes"
            << (has_own_root ? "\n" : "; this system permits no root of its own\n");
  const auto reached = try_all(true);
  for (const auto& escape : escapes()) {
    if (escape.hidden && !has_own_root) continue;
    ASSERT_TRUE(reached.contains("escape " + escape.name)) << escape.name;
    EXPECT_FALSE(reached.at("escape " + escape.name)) << escape.name;
  }
  for (const auto& need : needs()) {
    ASSERT_TRUE(reached.contains("need " + need.name)) << need.name;
    EXPECT_TRUE(reached.at("need " + need.name)) << need.name;
  }
  std::ifstream secret(prison_.foreign / "secret");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(secret), {}), "foreign");
}

TEST_F(CageTest, TheSameAttemptsSucceedWithoutACage) {
  const auto reached = try_all(false);
  for (const auto& escape : escapes())
    if (escape.open_elsewhere) {
      ASSERT_TRUE(reached.contains("escape " + escape.name)) << escape.name;
      EXPECT_TRUE(reached.at("escape " + escape.name)) << escape.name;
    }
}

TEST_F(CageTest, AProgramOutsideTheCageIsNotStarted) {
  if (!whole_cage_is_possible())
    GTEST_SKIP() << "this system does not permit the whole cage: quasi-cage --probe";
  const fs::path program = prison_.foreign / "program";
  fs::copy_file("/bin/true", program);
  int status = 0;
  output_of(std::string(QUASI_CAGE) + " -- '" + program.string() + "' 2>&1", &status);
  EXPECT_EQ(WEXITSTATUS(status), 127);
}

// A cage inside a cage stands for a system that forbids namespaces to ordinary users. Files and
// network are closed there without them, and the open wall is named with the reason of the system.
TEST_F(CageTest, WithoutNamespacesItNamesTheOpenWall) {
  if (!whole_cage_is_possible())
    GTEST_SKIP() << "this system does not permit the whole cage: quasi-cage --probe";
  const std::string cage = QUASI_CAGE;
  int status = 0;
  const std::string inner = output_of(cage + " --read '" + fs::path(cage).parent_path().string() +
                                          "' -- '" + fs::absolute(cage).string() + "' --probe 2>&1",
                                      &status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << inner;
  EXPECT_NE(inner.find("mounts open (mount namespace: Operation not permitted)"), std::string::npos)
      << inner;
  EXPECT_NE(inner.find("\"whole\": true"), std::string::npos) << inner;
}

}  // namespace
}  // namespace quasi::test
