// Tests that server and worker tell the service manager when they are ready, and that the loops
// that do their work ping its watchdog. The test plays the manager. It sticks each loop for a
// while: the writer of the server at a lock of the database, and the worker at a device that does
// not answer. The pings must end with the loop and come again with it.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "proto/wire/manager/service_manager.hpp"
#include "server/store/sqlite.hpp"
#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kInterval{800};
/// Pings come four times an interval. A loop that is silent for this time is stuck.
constexpr std::chrono::milliseconds kSilence = 2 * kInterval;

/// The socket at which the programs of the test find their manager, while it lives.
class FakeManager {
 public:
  explicit FakeManager(const fs::path& directory) {
    const std::string path = (directory / "manager").string();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", std::to_string(1'000 * kInterval.count()).c_str(), 1);
  }
  ~FakeManager() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
    ::close(socket_);
  }
  FakeManager(const FakeManager&) = delete;
  FakeManager& operator=(const FakeManager&) = delete;

  /// Number of messages of this text since the last call of take().
  int take(const std::string& text) {
    char buffer[256];
    int n = 0;
    for (ssize_t size = 0; (size = ::recv(socket_, buffer, sizeof buffer, 0)) >= 0;)
      n += std::string_view(buffer, static_cast<std::size_t>(size)) == text;
    return n;
  }
  bool hears(const std::string& text) {
    return wait_for([&] { return take(text) > 0; });
  }
  /// True once nothing has come for a silence; false if pings go on.
  bool falls_silent() {
    auto silent_since = std::chrono::steady_clock::now();
    return wait_for(
        [&] {
          const auto now = std::chrono::steady_clock::now();
          if (take("WATCHDOG=1") > 0) silent_since = now;
          return now - silent_since > kSilence;
        },
        within(20));
  }

 private:
  int socket_ = -1;
};

TEST(Watchdog, OfTheServerIsPingedByTheThreadThatWrites) {
  Service service;
  FakeManager manager(service.directory());
  service.start_server();
  EXPECT_TRUE(manager.hears("READY=1"));
  EXPECT_TRUE(manager.hears("WATCHDOG=1"));
  {
    server::Database database((service.directory() / "data" / "quasi.db").string(),
                              server::Database::Mode::kWriter);
    // The writer waits five seconds for the lock. Calls that only read are still answered.
    database.execute("BEGIN IMMEDIATE");
    EXPECT_TRUE(manager.falls_silent()) << "pings came while the writer was stuck";
    database.execute("ROLLBACK");
  }
  EXPECT_TRUE(manager.hears("WATCHDOG=1")) << "the writer goes on";
  service.server().signal(SIGTERM);
  EXPECT_TRUE(manager.hears("STOPPING=1"));
}

TEST(Watchdog, OfTheWorkerIsPingedByItsLoop) {
  Service service;
  const fs::path list = service.directory() / "devices.toml", pipe = service.directory() / "pipe";
  const std::string devices = "[[device]]\nuuid = 'GPU-0'\n";
  std::ofstream(list) << devices;
  service.start_server();
  FakeManager manager(service.directory());
  service.start_worker("w", {"--devices", "fake:" + list.string()});
  EXPECT_TRUE(manager.hears("READY=1"));
  EXPECT_TRUE(manager.hears("WATCHDOG=1"));
  // The next look at the device waits until somebody writes to the pipe, as one at a device whose
  // driver hangs would wait.
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::rename(pipe, list);
  EXPECT_TRUE(manager.falls_silent()) << "pings came while the loop was stuck";
  const fs::path file = service.directory() / "file";
  std::ofstream(file) << devices;
  {
    std::ofstream answer(list);
    fs::rename(file, list);
    answer << devices;
  }
  EXPECT_TRUE(manager.hears("WATCHDOG=1")) << "the loop goes on";
  service.worker("w").signal(SIGTERM);
  EXPECT_TRUE(manager.hears("STOPPING=1"));
}

TEST(Watchdog, IsSilentWithoutAManagerOrForAnotherProcess) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(wire::Watchdog().turn_limit().has_value());
  EXPECT_EQ(wire::notify_manager("READY=1"), "");
  FakeManager manager(directory.path());
  EXPECT_EQ(wire::Watchdog().turn_limit(), kInterval / 4);
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_FALSE(wire::Watchdog().turn_limit().has_value());
  ::setenv("NOTIFY_SOCKET", (directory.path() / "nobody").c_str(), 1);
  EXPECT_NE(wire::notify_manager("READY=1"), "") << "nobody listens there";
}

}  // namespace
}  // namespace quasi::test
