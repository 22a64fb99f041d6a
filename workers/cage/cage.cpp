#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

std::string described(const char* name, const CageWall& wall, const char* closed) {
  return std::string(name) + ' ' + (wall.stands ? closed : "open") + " (" + wall.detail + ')';
}

}  // namespace

std::string Cage::summary() const {
  return described("network", network, "closed") + ", " + described("mounts", mounts, "closed") +
         ", " + described("files", files, "closed") + ", " +
         described("system calls", system_calls, "closed");
}

Cage enter_cage(const CageRules& rules) {
  Cage cage;
  const cage::Namespaces namespaces = cage::enter_namespaces(rules.network);
  cage.network = cage::close_network(rules, namespaces);
  cage.mounts = cage::hide_files(rules, namespaces);
  cage.files = cage::close_files(rules);
  cage.system_calls = cage::filter_system_calls(rules);
  // Without sockets the network is closed, even if no namespace was permitted.
  if (!cage.network.stands && !rules.network && !rules.processes && cage.system_calls.stands)
    cage.network = {true, "no connections; " + cage.network.detail};
  return cage;
}

}  // namespace quasi
