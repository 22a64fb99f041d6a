#include "tests/cage/escapes.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

bool opens(const fs::path& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0600);
  if (descriptor < 0) return false;
  close(descriptor);
  return true;
}
bool reads(const fs::path& path) { return opens(path, O_RDONLY); }
bool writes(const fs::path& path) { return opens(path, O_WRONLY | O_CREAT); }
bool lists(const fs::path& path) { return opens(path, O_RDONLY | O_DIRECTORY); }

template <typename... Arguments>
bool calls(long number, Arguments... arguments) {
  return syscall(number, arguments...) >= 0;
}

fs::path proc(const Prison& prison, const char* name) {
  return "/proc/" + std::to_string(prison.victim) + "/" + name;
}

bool connects(int family, const sockaddr* address, socklen_t size) {
  const int descriptor = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const bool done = connect(descriptor, address, size) == 0;
  close(descriptor);
  return done;
}

bool connects_unix(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return connects(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool connects_tcp(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connects(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool has_socket(int family, int type) {
  const int descriptor = socket(family, type | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  close(descriptor);
  return true;
}

bool forks() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child < 0) return false;
  waitpid(child, nullptr, 0);
  return true;
}

/// Starts processes until one of many attempts fails.
bool bombs() {
  constexpr int kMany = 1'000;
  for (int i = 0; i < kMany; ++i)
    if (!forks()) return i > 0;
  return true;
}

/// Starts a process by the system call `number`, which glibc may not use for fork().
bool clones(long number, long flags) {
  std::uint64_t arguments[11] = {0, 0, 0, 0, SIGCHLD};
  const long child = number == SYS_clone3
                         ? syscall(number, arguments, sizeof arguments)
                         : syscall(number, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(0);
  if (child < 0) return false;
  waitpid(static_cast<pid_t>(child), nullptr, 0);
  return true;
}

bool sees(const fs::path& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0;
}

/// Calls `act` with a descriptor of a file that may be read.
template <typename Act>
bool acts_on(const fs::path& path, Act act) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool done = act(descriptor) == 0;
  close(descriptor);
  return done;
}

bool starts_program() {
  const char* const words[]{"/bin/true", nullptr};
  // A process that could replace itself would end here with status 0; see Cage.EscapesFail.
  return execv(words[0], const_cast<char* const*>(words)) == 0;
}

bool reads_memory(int victim) {
  char byte = 0;
  const iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
  return process_vm_readv(victim, &here, 1, &there, 1, 0) >= 0;
}

bool limits_files_of(int victim) {
  rlimit current{};
  return prlimit(victim, RLIMIT_NOFILE, nullptr, &current) == 0;
}

std::vector<Escape> file_escapes() {
  using P = const Prison&;
  return {
      {"read /etc/passwd", [](P) { return reads("/etc/passwd"); }, true},
      {"read /etc/shadow", [](P) { return reads("/etc/shadow"); }},
      {"list the root", [](P) { return lists("/"); }, true},
      {"list /tmp", [](P) { return lists("/tmp"); }, true},
      {"list /home", [](P) { return lists("/home"); }, true},
      {"list /proc", [](P) { return lists("/proc"); }, true},
      {"read a foreign file", [](P p) { return reads(p.foreign / "secret"); }, true},
      {"read it by a link of the deck", [](P p) { return reads(p.attempt / "in/link"); }, true},
      {"read it by dots", [](P p) { return reads(p.attempt / "in/../../foreign/secret"); }, true},
      {"read it by /proc/self/root",
       [](P p) { return reads("/proc/self/root" + (p.foreign / "secret").string()); }, true},
      {"read it by /proc/self/cwd", [](P) { return reads("/proc/self/cwd/../foreign/secret"); },
       true},
      {"write a foreign file", [](P p) { return opens(p.foreign / "secret", O_WRONLY); }, true},
      {"truncate a foreign file",
       [](P p) { return truncate((p.foreign / "secret").c_str(), 6) == 0; }, true},
      {"remove a foreign file", [](P p) { return unlink((p.foreign / "spare").c_str()) == 0; },
       true},
      {"rename a foreign file",
       [](P p) {
         return rename((p.foreign / "second").c_str(), (p.attempt / "out/second").c_str()) == 0;
       },
       true},
      {"link a foreign file into the results",
       [](P p) {
         return link((p.foreign / "secret").c_str(), (p.attempt / "out/hard").c_str()) == 0;
       },
       true},
      {"make a symbolic link for the worker to follow",
       [](P p) { return symlink("/etc/passwd", (p.attempt / "out/soft").c_str()) == 0; }, true},
      {"change the mode of a foreign file",
       [](P p) { return chmod((p.foreign / "secret").c_str(), 0644) == 0; }, true},
      {"change the owner of a foreign file",
       [](P p) { return chown((p.foreign / "secret").c_str(), getuid(), getgid()) == 0; }, true},
      {"write an input", [](P p) { return opens(p.attempt / "in/deck", O_WRONLY); }, true},
      {"create beside the attempt", [](P p) { return writes(p.attempt / "new"); }, true},
      {"create in /tmp", [](P p) { return writes("/tmp/" + p.attempt.filename().string()); }, true},
      {"create in /dev/shm", [](P) { return writes("/dev/shm/quasi-escape"); }, true},
      {"create in /usr", [](P) { return writes("/usr/quasi-escape"); }},
      {"open a memory device", [](P) { return reads("/dev/mem"); }},
      {"open a terminal", [](P) { return opens("/dev/ptmx", O_RDWR); }},
      {"make a device",
       [](P p) { return mknod((p.attempt / "out/device").c_str(), S_IFCHR | 0600, 0x103) == 0; }},
      {"open by a handle", [](P) { return calls(SYS_open_by_handle_at, -1, nullptr, 0); }},
  };
}

/// Lists attempts that need no open file, which is all that Landlock looks at.
std::vector<Escape> hidden_escapes() {
  using P = const Prison&;
  std::vector<Escape> hidden{
      {"see the size of a foreign file", [](P p) { return sees(p.foreign / "secret"); }, true},
      {"see a foreign folder", [](P p) { return sees(p.foreign); }, true},
      {"see a socket", [](P p) { return sees(p.foreign / "socket"); }, true},
      {"see the passwords", [](P) { return access("/etc/passwd", F_OK) == 0; }, true},
      {"see another process", [](P p) { return sees("/proc/" + std::to_string(p.victim)); }, true},
      {"see the folders of users", [](P) { return sees("/home"); }, true},
      {"measure a foreign disk",
       [](P p) {
         struct statvfs found {};
         return statvfs(p.foreign.c_str(), &found) == 0;
       },
       true},
      {"enter a foreign folder",
       [](P p) {
         const bool entered = chdir(p.foreign.c_str()) == 0;
         return chdir(p.attempt.c_str()) != 0 || entered;
       },
       true},
      {"set the times of a foreign file",
       [](P p) { return utimensat(AT_FDCWD, (p.foreign / "secret").c_str(), nullptr, 0) == 0; },
       true},
      {"watch a foreign folder",
       [](P p) {
         const int watch = inotify_init1(IN_CLOEXEC);
         const bool watches = inotify_add_watch(watch, p.foreign.c_str(), IN_ALL_EVENTS) >= 0;
         close(watch);
         return watches;
       },
       true},
      {"change the mode of an input",
       [](P p) {
         return acts_on(p.attempt / "in/deck", [](int file) { return fchmod(file, 0600); });
       },
       true},
      {"set the times of an input",
       [](P p) {
         return acts_on(p.attempt / "in/deck", [](int file) { return futimens(file, nullptr); });
       },
       true},
      {"name an attribute of an input",
       [](P p) {
         return acts_on(p.attempt / "in/deck",
                        [](int file) { return fsetxattr(file, "user.x", "x", 1, 0); });
       }},
  };
  for (Escape& escape : hidden) escape.hidden = true;
  return hidden;
}

std::vector<Escape> network_escapes() {
  using P = const Prison&;
  return {
      {"connect to a Unix socket", [](P p) { return connects_unix(p.foreign / "socket"); }, true},
      {"connect a socket of packets",
       [](P p) {
         const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
         sockaddr_un address{};
         address.sun_family = AF_UNIX;
         std::strncpy(address.sun_path, (p.foreign / "socket").c_str(),
                      sizeof address.sun_path - 1);
         // The listening socket is of another type; only the filter answers EPERM.
         const bool refused = connect(descriptor, reinterpret_cast<const sockaddr*>(&address),
                                      sizeof address) != 0 &&
                              errno == EPERM;
         close(descriptor);
         return !refused;
       },
       true},
      {"connect by TCP", [](P p) { return connects_tcp(p.tcp_port); }, true},
      {"open an IPv6 socket", [](P) { return has_socket(AF_INET6, SOCK_STREAM); }},
      {"open a datagram socket", [](P) { return has_socket(AF_INET, SOCK_DGRAM); }, true},
      {"open a netlink socket", [](P) { return has_socket(AF_NETLINK, SOCK_RAW); }, true},
      {"open a packet socket", [](P) { return has_socket(AF_PACKET, SOCK_RAW); }},
      {"open a virtual-machine socket", [](P) { return has_socket(AF_VSOCK, SOCK_STREAM); }},
  };
}

std::vector<Escape> process_escapes() {
  using P = const Prison&;
  return {
      {"read another's environment", [](P p) { return reads(proc(p, "environ")); }, true},
      {"read another's command line", [](P p) { return reads(proc(p, "cmdline")); }, true},
      {"read another's memory", [](P p) { return reads(proc(p, "mem")); }},
      {"list another's descriptors", [](P p) { return lists(proc(p, "fd")); }, true},
      {"look through another's root", [](P p) { return lists(proc(p, "root")); }},
      {"copy another's memory", [](P p) { return reads_memory(p.victim); }},
      {"trace a process",
       [](P p) { return ptrace(PTRACE_SEIZE, p.victim, nullptr, nullptr) == 0; }},
      {"hold a process", [](P p) { return calls(SYS_pidfd_open, p.victim, 0); }, true},
      {"signal a process", [](P p) { return kill(p.victim, 0) == 0; }, true},
      {"signal a thread", [](P p) { return calls(SYS_tgkill, p.victim, p.victim, 0); }, true},
      {"queue a signal", [](P p) { return sigqueue(p.victim, 0, {}) == 0; }, true},
      {"read another's limits", [](P p) { return limits_files_of(p.victim); }, true},
      {"slow a process down",
       [](P p) { return setpriority(PRIO_PROCESS, static_cast<id_t>(p.victim), 19) == 0; }, true},
      {"share memory by a key", [](P) { return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0; },
       true},
      {"start a process", [](P) { return forks(); }, true},
      {"clone a process", [](P) { return clones(SYS_clone, 0); }, true},
      {"clone a process by clone3", [](P) { return clones(SYS_clone3, 0); }, true},
      {"start processes without end", [](P) { return bombs(); }, true},
      {"start a program", [](P) { return starts_program(); }},
  };
}

std::vector<Escape> kernel_escapes() {
  using P = const Prison&;
  return {
      {"make a user namespace", [](P) { return unshare(CLONE_NEWUSER) == 0; }},
      {"make a mount namespace", [](P) { return unshare(CLONE_NEWNS) == 0; }},
      {"clone into a namespace",
       [](P) { return calls(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0); }},
      {"enter a namespace", [](P) { return setns(-1, 0) == 0; }},
      {"mount", [](P p) { return mount("x", p.attempt.c_str(), "tmpfs", 0, nullptr) == 0; }},
      {"change the root", [](P p) { return chroot(p.attempt.c_str()) == 0; }},
      {"add a key", [](P) { return calls(SYS_add_key, "user", "quasi", "x", 1, -3); }},
      {"load a program into the kernel", [](P) { return calls(SYS_bpf, 5, nullptr, 0); }},
      {"watch the kernel's events",
       [](P) { return calls(SYS_perf_event_open, nullptr, 0, -1, -1, 0); }},
      {"handle page faults", [](P) { return calls(SYS_userfaultfd, O_CLOEXEC); }},
      {"queue calls past the filter",
       [](P) {
         char parameters[120] = {};
         return calls(SYS_io_uring_setup, 1, parameters);
       }},
      {"load a module", [](P) { return calls(SYS_finit_module, -1, "", 0); }},
      {"set the host's name", [](P) { return sethostname("x", 1) == 0; }},
      {"read the kernel's log", [](P) { return calls(SYS_syslog, 10, nullptr, 0); }},
  };
}

}  // namespace

std::vector<Escape> escapes() {
  std::vector<Escape> all = file_escapes();
  for (auto more : {hidden_escapes(), network_escapes(), process_escapes(), kernel_escapes()})
    for (auto& escape : more) all.push_back(std::move(escape));
  return all;
}

std::vector<Escape> needs() {
  using P = const Prison&;
  return {
      {"read its deck", [](P p) { return reads(p.attempt / "in/deck"); }},
      {"list its inputs", [](P p) { return lists(p.attempt / "in"); }},
      {"write a result", [](P p) { return writes(p.attempt / "out/result"); }},
      {"make a folder of results",
       [](P p) { return mkdir((p.attempt / "out/folder").c_str(), 0700) == 0; }},
      {"rename a result",
       [](P p) {
         return rename((p.attempt / "out/result").c_str(),
                       (p.attempt / "out/folder/result").c_str()) == 0;
       }},
      {"read a library", [](P) { return reads("/usr/lib/os-release"); }},
      {"read its own limits", [](P) { return reads("/proc/self/limits"); }},
      {"read the processors", [](P) { return reads("/proc/cpuinfo"); }},
      {"read zeros", [](P) { return reads("/dev/zero"); }},
      {"listen as the CUDA driver does",
       [](P) {
         const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
         sockaddr_un address{};
         address.sun_family = AF_UNIX;
         const std::string name = "quasi-" + std::to_string(getpid());
         name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
         const bool done =
             bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
             listen(descriptor, 1) == 0;
         close(descriptor);
         return done;
       }},
      {"name a thread, as the CUDA driver does",
       [](P) {
         const std::string self = std::to_string(getpid());
         return opens("/proc/self/task/" + self + "/comm", O_WRONLY | O_CREAT | O_TRUNC);
       }},
      {"start a thread",
       [](P) {
         bool ran = false;
         std::thread([&] { ran = true; }).join();
         return ran;
       }},
      {"signal itself", [](P) { return kill(getpid(), 0) == 0; }},
      {"map memory",
       [](P) {
         const std::size_t bytes = std::size_t{64} << 20;
         void* memory =
             mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return memory != MAP_FAILED && munmap(memory, bytes) == 0;
       }},
  };
}

}  // namespace quasi::test
