// Tries every escape and every need, one a line: "escape|need NAME: reached|refused". cage_test
// starts it inside quasi-cage, and also outside to show that the attempts work without walls.
//
// usage: cage_prisoner ATTEMPT FOREIGN TCP_PORT VICTIM caged|free

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cage/escapes.hpp"
#include "workers/cage/cage.hpp"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const quasi::test::Prison prison{argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4])};
  const bool caged = std::string(argv[5]) == "caged";
  // quasi-engine does this before it reads a deck.
  if (caged && !quasi::deny_new_processes().stands) return 3;
  const auto tell = [&](const char* what, const quasi::test::Escape& escape) {
    std::printf("%s %s: %s\n", what, escape.name.c_str(),
                escape.reaches(prison) ? "reached" : "refused");
    std::fflush(stdout);
  };
  for (const auto& need : quasi::test::needs()) tell("need", need);
  for (const auto& escape : quasi::test::escapes())
    if (caged || escape.open_elsewhere) tell("escape", escape);
  std::puts("end");
}
