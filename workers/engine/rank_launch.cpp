#include "workers/engine/rank_launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/engine/run_task.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

/// Directory below the working directory. The launcher leaves no other files.
constexpr const char* kDirectory = "ranks";
constexpr const char* kSocket = "ranks/socket";

std::atomic<bool> terminated{false};

[[noreturn]] void fail(const std::string& what) { throw Error(what + ": " + std::strerror(errno)); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

/// A message with a file descriptor beside its bytes.
struct Parcel {
  explicit Parcel(std::string text) : bytes(std::move(text)), part{bytes.data(), bytes.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  std::string bytes;
  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

void pass_socket(int connection, const PacketSocket& daemon, const v1::EngineStart& start) {
  Parcel parcel(start.SerializeAsString());
  cmsghdr* attached = CMSG_FIRSTHDR(&parcel.header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = daemon.descriptor();
  std::memcpy(CMSG_DATA(attached), &descriptor, sizeof descriptor);
  if (sendmsg(connection, &parcel.header, MSG_NOSIGNAL) < 0)
    fail("passing the daemon's socket to rank 0");
}

/// Sets Open MPI's options for one host whose processors the daemon has already assigned. No file
/// is left outside the attempt's directory, even if ranks are killed. Other launchers ignore these
/// variables.
void set_launcher_environment() {
  const std::string directory = fs::absolute(kDirectory);
  const std::pair<const char*, std::string> variables[]{
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"OMPI_MCA_plm_rsh_agent", "true"},  // no ssh is needed
      // Single copies need a privilege that containers lack.
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
      {"OMPI_MCA_btl_vader_backing_directory",
       directory},  // not /dev/shm, where files of a killed rank would stay
      {"OMPI_MCA_orte_tmpdir_base", directory},
      {"TMPDIR", directory}};
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  if (geteuid() == 0)  // the operator has decided to run the worker as root
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
      setenv(name, "1", 1);
}

pid_t start_launcher(std::uint32_t n_ranks) {
  const std::string self = fs::read_symlink("/proc/self/exe"), count = std::to_string(n_ranks);
  std::vector<std::string> words{QUASI_MPIEXEC, "-n", count, self, "rank", kSocket};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail("starting the MPI launcher");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, SIG_DFL);
  execv(arguments[0], arguments.data());
  _exit(127);
}

/// Waits for rank 0 and passes the socket to it. @return false if the launcher ended earlier, with
/// its wait status.
bool serve_rank_0(int listener, pid_t launcher, const PacketSocket& daemon,
                  const v1::EngineStart& start, int* status) {
  for (;;) {
    pollfd wait{.fd = listener, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 20) > 0) break;
    if (waitpid(launcher, status, WNOHANG) == launcher) return false;
  }
  const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0) fail("waiting for the connection of rank 0");
  pass_socket(connection, daemon, start);
  close(connection);
  return true;
}

int wait_for(pid_t launcher) {
  int status = 0;
  while (waitpid(launcher, &status, 0) != launcher)
    if (errno != EINTR) fail("waiting for the MPI launcher");
  return status;
}

/// Converts the status of a launcher, which reports a rank that a signal ended as 128 + the
/// signal's number.
int unwrapped_status(int wait_status) {
  const int status =
      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  if (status != 0 && terminated) return static_cast<int>(ExitStatus::kCancelled);
  if (status > 128 && status < 128 + NSIG) {
    std::signal(status - 128, SIG_DFL);
    raise(status - 128);
  }
  return status;
}

}  // namespace

int launch_ranks(PacketSocket& daemon, const v1::EngineStart& start) {
  std::signal(SIGTERM, [](int) { terminated = true; });
  fs::create_directories(kDirectory);
  set_launcher_environment();
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(kSocket);
  if (listener < 0 ||
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 1) != 0)
    fail(std::string("opening '") + kSocket + "'");
  const pid_t launcher = start_launcher(start.ranks());
  int status = 0;
  if (!serve_rank_0(listener, launcher, daemon, start, &status)) {
    const std::string why =
        std::string("'") + QUASI_MPIEXEC + "' ended before rank 0 started (status " +
        std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)) +
        "); read the attempt's log for its messages";
    v1::EngineReport report;
    report.mutable_failed()->set_reason(v1::FAILURE_REASON_ENGINE_ERROR);
    report.mutable_failed()->set_message(why);
    if (!terminated) daemon.send(report, PacketSocket::Wait::kYes);
    std::cerr << "error: " << why << '\n';
    return static_cast<int>(terminated ? ExitStatus::kCancelled : ExitStatus::kUnexpected);
  }
  daemon.close();  // only rank 0 uses the socket from here on
  close(listener);
  return unwrapped_status(wait_for(launcher));
}

DaemonContact receive_contact(const std::string& socket_path) {
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(socket_path);
  if (connection < 0 ||
      connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw InvalidInput("a rank can only be started by quasi-engine exec: '" + socket_path +
                       "' cannot be opened (" + std::strerror(errno) + ")");
  Parcel parcel(std::string(kMaxPacketBytes, '\0'));
  const ssize_t size = recvmsg(connection, &parcel.header, MSG_CMSG_CLOEXEC);
  const cmsghdr* attached = size > 0 ? CMSG_FIRSTHDR(&parcel.header) : nullptr;
  close(connection);
  DaemonContact contact;
  if (attached == nullptr || attached->cmsg_type != SCM_RIGHTS ||
      !contact.start.ParseFromArray(parcel.bytes.data(), static_cast<int>(size)))
    throw Error("'" + socket_path + "' delivered no socket of a daemon");
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(attached), sizeof descriptor);
  contact.daemon = PacketSocket(descriptor);
  return contact;
}

}  // namespace quasi
