// Closes the network with an empty network namespace, if the system permits one.

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

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

CageWall cage::close_network(const CageRules& rules, const Namespaces& namespaces) {
  if (rules.network) return {false, "left as it is"};
  if (!namespaces.network) return {false, "network namespace: " + namespaces.refusal};
  if (rules.processes && !switch_loopback_on())
    return {true, "empty namespace, without a loopback interface"};
  return {true, "empty namespace"};
}

}  // namespace quasi
