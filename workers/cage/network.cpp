// Closes the network with an empty network namespace, if the system permits one.

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

/// Enters an empty network namespace. Without the privilege it does so inside a user namespace, in
/// which the process keeps its user and group.
bool enter_empty_namespace() {
  if (unshare(CLONE_NEWNET) == 0) return true;
  const auto uid = std::to_string(getuid()), gid = std::to_string(getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << uid + " " + uid + " 1";
  std::ofstream("/proc/self/gid_map") << gid + " " + gid + " 1";
  return true;
}

/// Switches the loopback interface on, which MPI ranks of one host use and which is off at first.
bool switch_loopback_on() {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool done = ioctl(descriptor, SIOCSIFFLAGS, &request) == 0;
  close(descriptor);
  return done;
}

}  // namespace

CageWall cage::close_network(const CageRules& rules) {
  if (rules.network) return {false, "left as it is"};
  if (!enter_empty_namespace())
    return {false, std::string("network namespace: ") + std::strerror(errno)};
  if (rules.processes && !switch_loopback_on())
    return {true, "empty namespace, without a loopback interface"};
  return {true, "empty namespace"};
}

}  // namespace quasi
