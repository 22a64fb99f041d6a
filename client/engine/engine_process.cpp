#include "client/engine/engine_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/engine/interrupt.hpp"
#include "client/failure.hpp"
#include "proto/wire/waiting_threads.hpp"

extern char** environ;

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCaptureLimitBytes = 16 << 20;

fs::path own_directory() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path(".") : self.parent_path();
}

fs::path engine_place() {
  if (const char* named = std::getenv("QUASI_ENGINE"); named != nullptr && *named != '\0')
    return named;
  return own_directory() / "quasi-engine";
}

/// Attributes for a child with default signal handling, because this program blocks two signals.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

pid_t spawn(const fs::path& engine, const std::vector<std::string>& arguments, SpawnSetup& setup) {
  std::vector<char*> argv{const_cast<char*>(engine.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  let_children_sleep_while_waiting();
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, engine.c_str(), &setup.actions, &setup.attributes, argv.data(), environ);
  if (error != 0)
    throw Failure(ExitStatus::kEngineUnavailable,
                  "cannot start '" + engine.string() + "': " + std::strerror(error),
                  "install quasi-engine beside quasi, or set QUASI_ENGINE to its path");
  return pid;
}

ChildEnd wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      throw Failure(ExitStatus::kUnexpected,
                    std::string("lost the engine's process: ") + std::strerror(errno));
  }
  if (WIFSIGNALED(status)) return {.status = 0, .signal = WTERMSIG(status)};
  return {.status = WEXITSTATUS(status), .signal = 0};
}

/// A pipe. The reading end stays in this process.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw Failure(ExitStatus::kUnexpected, std::string("no pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_reader() { close_end(0); }
  void close_writer() { close_end(1); }

 private:
  void close_end(std::size_t i) {
    if (ends_[i] >= 0) ::close(ends_[i]);
    ends_[i] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

/// Reads all available bytes. @return false at the end of the stream.
bool drain(int fd, std::string& into) {
  std::array<char, 16 << 10> chunk{};
  const ssize_t got = ::read(fd, chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  if (into.size() < kCaptureLimitBytes) into.append(chunk.data(), static_cast<std::size_t>(got));
  return true;
}

/// True if Ctrl-C arrived before the engine handled it.
bool was_interrupted(const ChildEnd& end) {
  return interrupt::requested() && (end.signal == SIGINT || end.signal == SIGTERM);
}

}  // namespace

std::optional<fs::path> find_engine() {
  const fs::path place = engine_place();
  if (::access(place.c_str(), X_OK) == 0) return place;
  return std::nullopt;
}

fs::path require_engine() {
  if (auto engine = find_engine()) return *engine;
  throw Failure(ExitStatus::kEngineUnavailable,
                "no quasi-engine at '" + engine_place().string() + "'",
                "install quasi-engine beside quasi, or set QUASI_ENGINE to its path");
}

ChildEnd run_engine(const fs::path& engine, const std::vector<std::string>& arguments) {
  SpawnSetup setup;
  const pid_t pid = spawn(engine, arguments, setup);
  const interrupt::Scope forward([pid] {
    // After Ctrl-C at a terminal the child has already received the signal, as a member of the
    // process group. The engine treats a second signal as a repetition.
    ::kill(pid, interrupt::exit_status() == 143 ? SIGTERM : SIGINT);
  });
  return wait_for(pid);
}

CapturedEnd capture_engine(const fs::path& engine, const std::vector<std::string>& arguments) {
  Pipe out;
  Pipe err;
  SpawnSetup setup;
  posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&setup.actions, out.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&setup.actions, err.writer(), STDERR_FILENO);
  const pid_t pid = spawn(engine, arguments, setup);
  const interrupt::Scope stop([pid] { ::kill(pid, SIGTERM); });
  out.close_writer();
  err.close_writer();

  CapturedEnd captured;
  bool out_open = true;
  bool err_open = true;
  while (out_open || err_open) {
    std::array<pollfd, 2> fds{
        {{out_open ? out.reader() : -1, POLLIN, 0}, {err_open ? err.reader() : -1, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) out_open = drain(out.reader(), captured.out);
    if (fds[1].revents != 0) err_open = drain(err.reader(), captured.err);
  }
  captured.end = wait_for(pid);
  return captured;
}

ExitStatus status_of_engine(const ChildEnd& end) {
  if (was_interrupted(end)) return static_cast<ExitStatus>(interrupt::exit_status());
  if (end.signal != 0) return ExitStatus::kJobFailed;
  if (end.status >= 100 && end.status < 126)
    return ExitStatus::kUsage;  // its argument parser refused the command line
  switch (end.status) {
    case 0:
      return ExitStatus::kOk;
    case 2:
      return ExitStatus::kUsage;
    case 10:
      return ExitStatus::kInvalidInput;
    case 11:
      return ExitStatus::kJobFailed;  // did not converge
    case 12:
      return ExitStatus::kEngineUnavailable;  // the device is too small
    case 13:
      return ExitStatus::kEngineUnavailable;  // the device failed
    case 14:
      return interrupt::requested() ? static_cast<ExitStatus>(interrupt::exit_status())
                                    : ExitStatus::kJobCancelled;
    case 15:
      return ExitStatus::kLocalFile;
    case 16:
      return ExitStatus::kEngineUnavailable;  // built without the back end
    default:
      return ExitStatus::kUnexpected;
  }
}

std::string engine_sentence(const std::string& err) {
  std::string last;
  std::size_t start = 0;
  while (start < err.size()) {
    const std::size_t end = std::min(err.find('\n', start), err.size());
    const std::string line = err.substr(start, end - start);
    if (line.starts_with("error: ")) return line.substr(7);
    if (!line.empty()) last = line;
    start = end + 1;
  }
  return last;
}

std::string describe_engine_end(const ChildEnd& end) {
  if (end.signal != 0 && !was_interrupted(end)) {
    const char* name = sigdescr_np(end.signal);
    return "quasi-engine was killed by signal " + std::to_string(end.signal) +
           (name != nullptr ? std::string(" (") + name + ")" : "") +
           (end.signal == SIGKILL ? "; the system kills programs when memory runs out" : "");
  }
  return "";
}

}  // namespace quasi::client
