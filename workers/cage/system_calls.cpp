// Forbids system calls that no calculation needs: they fail with EPERM (seccomp).

#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

/// System calls that read other processes, change the machine, or reach the kernel in ways that the
/// other walls do not cover.
constexpr std::array kForbidden{
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    // namespaces and file systems
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "swapon", "swapoff",
    "quotactl", "quotactl_fd", "name_to_handle_at", "open_by_handle_at", "mknod", "mknodat",
    // owners, modes and attributes of files, which Landlock does not protect
    "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "setxattr", "lsetxattr",
    "setxattrat", "removexattr", "lremovexattr", "removexattrat",
    // keys, programs in the kernel, its log and its modules
    "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "syslog",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
    "io_uring_setup", "io_uring_enter", "io_uring_register", "fanotify_init", "lookup_dcookie",
    // the machine itself
    "reboot", "acct", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname",
    "setdomainname", "iopl", "ioperm", "vhangup", "nfsservctl"};

/// System calls that act on other processes of the user by their numbers.
constexpr std::array kOnOthers{"tkill",      "pidfd_open",    "pidfd_send_signal", "setpriority",
                               "ioprio_set", "migrate_pages", "move_pages"};
/// System calls that send signals. Their first argument names the process.
constexpr std::array kSignals{"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"};
/// Objects in memory that processes share by name.
constexpr std::array kShared{"shmget", "semget", "msgget", "mq_open"};

// The CUDA driver does not start without a listening socket: AF_UNIX, SOCK_SEQPACKET, bound to a
// name in the network namespace. Such sockets may be made, but nothing connects.
constexpr std::array kForbiddenSocketTypes{SOCK_STREAM, SOCK_DGRAM, SOCK_RAW,
                                           SOCK_RDM,    SOCK_DCCP,  SOCK_PACKET};
constexpr std::uint64_t kSocketTypeBits = 0xF;  ///< the rest of the argument holds flags

constexpr std::array kOfProcesses{"execve", "execveat", "fork", "vfork"};

constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/// A filter under construction, by libseccomp. The first failure is kept.
class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW), seccomp_release) {
    if (!context_) failure_ = -ENOMEM;
  }

  void forbid(const char* name) {
    const int number = seccomp_syscall_resolve_name(name);
    // A name that this architecture or this version of the library lacks need not be forbidden.
    if (number < 0) return;
    note(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(EPERM), number, 0));
  }
  /// Forbids calls whose first argument has one of `bits` set.
  void forbid_bits(int number, std::uint64_t bits) {
    for (std::uint64_t bit = 1; bit != 0 && bit <= bits; bit <<= 1)
      if (bits & bit)
        note(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(EPERM), number, 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit)));
  }
  /// Forbids calls whose first argument has `bit` not set.
  void forbid_without_bit(int number, std::uint64_t bit) {
    note(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(EPERM), number, 1,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, bit, 0)));
  }
  /// Forbids calls whose first argument is not `value`.
  void forbid_unless(const char* name, std::uint64_t value) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0)
      note(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(EPERM), number, 1,
                            SCMP_A0(SCMP_CMP_NE, value)));
  }
  /// Hides clone3, whose flags lie in memory that a filter cannot read. Libraries then use clone.
  void hide_clone3() {
    note(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
  }
  /// Leaves the sockets that the CUDA driver listens on, and no connection.
  void forbid_connections() {
    forbid("connect");
    forbid_unless("socket", AF_UNIX);
    for (const int type : kForbiddenSocketTypes)
      note(seccomp_rule_add(
          context_.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
          SCMP_A1(SCMP_CMP_MASKED_EQ, kSocketTypeBits, static_cast<std::uint64_t>(type))));
  }
  void hold_for_all_threads() { note(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1)); }

  CageWall enforce(const std::string& detail) {
    if (failure_ == 0) note(seccomp_load(context_.get()));
    if (failure_ != 0) return {false, std::string("seccomp: ") + std::strerror(-failure_)};
    return {true, detail};
  }

 private:
  void note(int result) {
    if (result < 0 && failure_ == 0) failure_ = result;
  }
  std::unique_ptr<void, decltype(&seccomp_release)> context_;
  int failure_ = 0;
};

}  // namespace

CageWall cage::filter_system_calls(const CageRules& rules) {
  Filter filter;
  for (const char* name : kForbidden) filter.forbid(name);
  filter.forbid_unless("prlimit64", 0);
  filter.forbid_bits(SCMP_SYS(clone), kNamespaces);
  filter.hide_clone3();
  if (!rules.processes) {
    for (const char* name : kOnOthers) filter.forbid(name);
    for (const char* name : kSignals) filter.forbid_unless(name, static_cast<unsigned>(getpid()));
    for (const char* name : kShared) filter.forbid(name);
  }
  if (!rules.processes && !rules.network) {
    filter.forbid_connections();
    return filter.enforce("filtered, no connections");
  }
  return filter.enforce("filtered");
}

CageWall deny_new_processes() {
  Filter filter;
  filter.hold_for_all_threads();
  filter.forbid_connections();
  for (const char* name : kOfProcesses) filter.forbid(name);
  filter.forbid_without_bit(SCMP_SYS(clone), CLONE_THREAD);
  filter.hide_clone3();
  return filter.enforce("no processes, no connections");
}

}  // namespace quasi
