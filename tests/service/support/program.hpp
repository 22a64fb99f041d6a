#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quasi::test {

/// Longest wait in seconds for an expected event. Only a hanging test waits so long. No test
/// concludes anything from the speed of an event, because machines may be slow.
constexpr double kHangSeconds = 200;

using Deadline = std::chrono::steady_clock::time_point;
Deadline within(double seconds);

/// Polls every few milliseconds until `holds` is true; false if the deadline passes first.
bool wait_for(const std::function<bool()>& holds, Deadline deadline = within(kHangSeconds));

/// One of the project's executables as a child of the test. The destructor kills it. Its output
/// goes to a file.
class Program {
 public:
  Program(const std::string& name, const std::vector<std::string>& arguments,
          const std::filesystem::path& log);
  ~Program();
  Program(Program&& other) noexcept : pid_(std::exchange(other.pid_, -1)), log_(other.log_) {}
  Program& operator=(Program&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(log_, other.log_);
    return *this;
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Sends SIGKILL and waits for the end.
  void kill_now();
  /// Returns the wait status once the child has ended; nothing if it has not ended by the deadline.
  std::optional<int> wait(Deadline deadline = within(kHangSeconds));
  std::string output() const;
  /// Path of an executable of this build. If QUASI_OLDER_PROGRAMS names a folder, client, worker,
  /// cage and engine are those of an older build there, so that every test of real processes runs
  /// them against this server.
  static std::filesystem::path path_of(const std::string& name);

 private:
  pid_t pid_ = -1;
  std::filesystem::path log_;
};

/// True once no process of that id runs. A process that has ended may keep its id until its parent
/// waits for it.
bool is_gone(pid_t pid);

/// Process ids of the direct children of `pid`.
std::vector<pid_t> children_of(pid_t pid);

}  // namespace quasi::test
