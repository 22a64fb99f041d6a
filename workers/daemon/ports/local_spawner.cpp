#include "workers/daemon/ports/local_spawner.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "proto/wire/packet_socket.hpp"

namespace quasi {
namespace {

constexpr int kIpcDescriptor = 3;
/// Folder of the attempt in which an MPI launcher and its ranks meet; quasi-engine knows its name.
constexpr const char* kRanksDirectory = "ranks";

/// Returns the start time of a process, field 22 of /proc/<pid>/stat. Returns nothing if the
/// process does not exist or is a zombie.
std::optional<std::uint64_t> start_ticks(std::int64_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(in, text)) return std::nullopt;
  // The name in parentheses may contain any character. The text after the last ')' starts with
  // field 3.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 2));
  std::string state, skipped;
  rest >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  std::uint64_t ticks = 0;
  return rest >> ticks ? std::optional(ticks) : std::nullopt;
}

/// Returns how often the kernel has killed for lack of memory, in this process's cgroup or else on
/// the host.
std::uint64_t oom_kills() {
  const auto read_counter = [](const std::string& path) -> std::optional<std::uint64_t> {
    std::ifstream in(path);
    std::string key;
    std::uint64_t value = 0;
    while (in >> key >> value)
      if (key == "oom_kill") return value;
    return std::nullopt;
  };
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::"))
      if (const auto count = read_counter("/sys/fs/cgroup" + line.substr(3) + "/memory.events"))
        return *count;
  return read_counter("/proc/vmstat").value_or(0);
}

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

void limit(pid_t pid, __rlimit_resource resource, std::uint64_t value) {
  const rlimit both{value, value};
  prlimit(pid, resource, &both, nullptr);
}

/// Returns the command line of an engine, inside its cage if there is one.
std::vector<std::string> command_line(const SpawnSettings& settings, const LaunchPlan& plan) {
  const auto engine = std::filesystem::absolute(settings.engine);
  std::vector<std::string> words;
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (!settings.cage.empty()) {
    const auto attempt = std::filesystem::absolute(plan.working_directory);
    add({settings.cage, "--read", engine.parent_path(), "--read", attempt / "in"});
    for (const auto& path : settings.readable) add({"--read", path});
    for (const char* folder : {"out", "ckpt", "cache"}) add({"--write", attempt / folder});
    if (plan.starts_ranks)
      add({"--processes", "--read", "/proc", "--write", attempt / kRanksDirectory});
    if (!settings.isolate_network) add({"--network"});
    add({"--"});
  }
  words.insert(words.end(), {engine.string(), "exec", "--ipc-fd", std::to_string(kIpcDescriptor),
                             "--parent", std::to_string(getpid())});
  return words;
}

class LocalChild : public EngineChild {
 public:
  LocalChild(EventLoop& loop, pid_t pid, PacketSocket socket, ChildEvents& events,
             std::uint64_t oom_kills_before)
      : loop_(loop),
        pid_(pid),
        start_ticks_(start_ticks(pid).value_or(0)),
        socket_(std::move(socket)),
        events_(events),
        oom_kills_before_(oom_kills_before),
        pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
    if (pidfd_ < 0) {
      const int error = errno;
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      fail("the system has no process descriptors; Linux 5.3 or later is needed", error);
    }
    loop_.watch(pidfd_, [this] { reap(); });
    loop_.watch(socket_.descriptor(), [this] { receive(); });
    listening_ = true;
  }

  ~LocalChild() override {
    stop_listening();
    if (pidfd_ < 0) return;
    kill(-pid_, SIGKILL);
    loop_.unwatch(pidfd_);
    close(pidfd_);
    waitpid(pid_, nullptr, WNOHANG);
  }

  ProcessIdentity identity() const override { return {pid_, start_ticks_}; }
  bool send(const v1::EngineCommand& command) override {
    return socket_.send(command, PacketSocket::Wait::kNo) == PacketSocket::Sent::kYes;
  }
  void signal_group(int signal) override {
    if (pidfd_ >= 0) kill(-pid_, signal);  // the child is not reaped, so its id is still valid
  }

 private:
  void stop_listening() {
    if (listening_) loop_.unwatch(socket_.descriptor());
    listening_ = false;
  }

  /// Receives at most `most` messages, so that an engine with many messages does not delay others.
  void receive(int most = 64) {
    for (int i = 0; i < most && listening_; ++i) {
      v1::EngineReport report;
      switch (socket_.receive(report, PacketSocket::Wait::kNo)) {
        case PacketSocket::Received::kMessage:
          events_.on_report(report);
          break;
        case PacketSocket::Received::kNothing:
          return;
        case PacketSocket::Received::kClosed:
          return stop_listening();
        case PacketSocket::Received::kGarbage:
          stop_listening();
          return events_.on_garbage();
      }
    }
  }

  void reap() {
    // The messages that the child sent before its exit are delivered first. Then the rest of its
    // process group is killed.
    receive(1 << 20);
    stop_listening();
    kill(-pid_, SIGKILL);
    int status = 0;
    rusage usage{};
    if (wait4(pid_, &status, WNOHANG, &usage) != pid_) return;
    loop_.unwatch(pidfd_);
    close(std::exchange(pidfd_, -1));
    ChildExit exit;
    if (WIFEXITED(status)) exit.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
    exit.killed_for_memory = exit.signal == SIGKILL && oom_kills() > oom_kills_before_;
    events_.on_exit(exit, {.peak_ram_bytes = usage.ru_maxrss * 1024});
  }

  EventLoop& loop_;
  pid_t pid_;
  std::uint64_t start_ticks_;
  PacketSocket socket_;
  ChildEvents& events_;
  std::uint64_t oom_kills_before_;
  int pidfd_;
  bool listening_ = false;
};

}  // namespace

std::unique_ptr<EngineChild> LocalSpawner::spawn(const LaunchPlan& plan, ChildEvents& events) {
  if (plan.starts_ranks)
    std::filesystem::create_directories(plan.working_directory / kRanksDirectory);
  auto [ours, theirs] = PacketSocket::make_pair();
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, plan.log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(actions.get(), STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), theirs.descriptor(), kIpcDescriptor);
  posix_spawn_file_actions_addclosefrom_np(actions.get(), kIpcDescriptor + 1);
  posix_spawn_file_actions_addchdir_np(actions.get(), plan.working_directory.c_str());

  std::vector<std::string> words = command_line(settings_, plan);
  std::vector<char*> arguments, environment;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> variables = plan.environment;
  for (auto& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);

  const std::uint64_t oom_before = oom_kills();
  Attributes attributes;
  pid_t pid = -1;
  const int error = posix_spawn(&pid, words.front().c_str(), actions.get(), attributes.get(),
                                arguments.data(), environment.data());
  if (error != 0) fail("cannot start '" + words.front() + "'", error);
  limit(pid, RLIMIT_CORE, 0);
  if (settings_.max_file_bytes > 0) limit(pid, RLIMIT_FSIZE, settings_.max_file_bytes);
  // The limit is on private writable memory, not on address space: a CUDA context reserves far more
  // addresses than it uses.
  if (plan.max_ram_bytes > 0) limit(pid, RLIMIT_DATA, plan.max_ram_bytes);
  if (settings_.max_processes > 0) limit(pid, RLIMIT_NPROC, settings_.max_processes);
  return std::make_unique<LocalChild>(loop_, pid, std::move(ours), events, oom_before);
}

bool LocalSpawner::end_stray(const ProcessIdentity& child, Milliseconds patience) {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  // Normally the child died with its daemon, and the loop ends at once.
  while (start_ticks(child.pid) == child.start_ticks) {
    kill(-static_cast<pid_t>(child.pid), SIGKILL);
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

}  // namespace quasi
