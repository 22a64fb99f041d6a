// Enters namespaces of the process's own, if the system permits them.

#include "workers/cage/namespaces.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace quasi {
namespace {

/// Leaves the shared namespaces of `flags`. Without the privilege it does so inside a user
/// namespace, in which the process keeps its user and group.
bool leave(int flags) {
  if (unshare(flags) == 0) return true;
  const auto uid = std::to_string(getuid()), gid = std::to_string(getgid());
  if (unshare(CLONE_NEWUSER | flags) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << uid + " " + uid + " 1";
  std::ofstream("/proc/self/gid_map") << gid + " " + gid + " 1";
  return true;
}

}  // namespace

cage::Namespaces cage::enter_namespaces(bool network) {
  // A system may permit one kind and not the other.
  const int empty_network = network ? 0 : CLONE_NEWNET;
  for (const int flags : std::array{empty_network | CLONE_NEWNS, empty_network, CLONE_NEWNS})
    if (flags != 0 && leave(flags))
      return {.network = (flags & CLONE_NEWNET) != 0,
              .mounts = (flags & CLONE_NEWNS) != 0,
              .refusal = "this kind alone is not permitted"};
  return {.network = false, .mounts = false, .refusal = std::strerror(errno)};
}

}  // namespace quasi
