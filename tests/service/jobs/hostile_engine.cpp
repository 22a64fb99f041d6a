// An engine that was taken over: it tries every escape of tests/cage and writes a line for each
// into its log. escape_test lets a real worker start it in place of quasi-engine.
//
// The variable QUASI_PRISON holds "FOREIGN TCP_PORT VICTIM", QUASI_TRUE_ENGINE the engine that
// answers the worker's questions about kinds and devices.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/cage/escapes.hpp"
#include "workers/cage/cage.hpp"

int main(int argc, char** argv) {
  const char* prison_text = std::getenv("QUASI_PRISON");
  if (argc > 1 && std::string(argv[1]) == "devices") {
    execv(std::getenv("QUASI_TRUE_ENGINE"), argv);
    return 2;
  }
  if (prison_text == nullptr) return 2;
  quasi::test::Prison prison;
  std::istringstream in(prison_text);
  in >> prison.foreign >> prison.tcp_port >> prison.victim;
  prison.attempt = std::filesystem::current_path();
  // quasi-engine does this before it reads a deck.
  if (!quasi::deny_new_processes().stands) return 3;
  int tried = 0;
  int reached = 0;
  const char* walls = std::getenv("QUASI_CAGE");
  const bool has_own_root =
      walls != nullptr && std::string(walls).find("mounts closed") != std::string::npos;
  for (const auto& escape : quasi::test::escapes()) {
    if (escape.hidden && !has_own_root) continue;
    ++tried;
    if (!escape.reaches(prison)) continue;
    ++reached;
    std::printf("reached: %s\n", escape.name.c_str());
    std::fflush(stdout);
  }
  std::printf("tried %d, reached %d\n", tried, reached);
  std::fflush(stdout);
  return 10;
}
