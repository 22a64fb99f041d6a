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

/// How long is waited for what must come. Only a test that hangs waits so long: nothing is
/// concluded from how soon a thing came, since a machine may be as slow as it likes.
constexpr double kHangSeconds = 200;

using Deadline = std::chrono::steady_clock::time_point;
Deadline within(double seconds);

/// Asks every few milliseconds until `holds` says yes; false if the deadline passes first.
bool wait_for(const std::function<bool()>& holds, Deadline deadline = within(kHangSeconds));

/// One of the project's executables as a child of the test; killed with the object. Its output goes
/// to a file.
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
  /// SIGKILL, and the end of it.
  void kill_now();
  /// The wait status once it has ended; nothing if it has not by the deadline.
  std::optional<int> wait(Deadline deadline = within(kHangSeconds));
  std::string output() const;
  static std::filesystem::path path_of(const std::string& name);

 private:
  pid_t pid_ = -1;
  std::filesystem::path log_;
};

/// True once no process of that id runs. One that has ended may keep its id until somebody asks
/// how.
bool is_gone(pid_t pid);

/// Process ids of the direct children of `pid`.
std::vector<pid_t> children_of(pid_t pid);

}  // namespace quasi::test
