// quasi-cage confines itself and then becomes the given program. It is a separate program, because
// walls hold for the threads of one process, and libraries of the engine start threads before
// main().

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/cage/cage.hpp"

namespace quasi {
namespace {

constexpr int kUsage = 2, kNotStarted = 127;

struct Arguments {
  std::vector<std::string> readable, writable, program;
  bool processes = false, network = false, probe = false;
};

CageRules rules_of(const Arguments& arguments) {
  CageRules rules = system_rules();
  for (const auto& path : arguments.readable) rules.readable.emplace_back(path);
  for (const auto& path : arguments.writable) rules.writable.emplace_back(path);
  rules.processes = arguments.processes;
  rules.network = arguments.network;
  return rules;
}

nlohmann::json document_of(const CageWall& wall) {
  return {{"stands", wall.stands}, {"detail", wall.detail}};
}

int print_walls(const Cage& cage) {
  std::cout << nlohmann::json{{"network", document_of(cage.network)},
                              {"mounts", document_of(cage.mounts)},
                              {"files", document_of(cage.files)},
                              {"system_calls", document_of(cage.system_calls)},
                              {"whole", cage.is_whole()},
                              {"summary", cage.summary()}}
                   .dump(2)
            << '\n';
  return 0;
}

int become(const Arguments& arguments, const Cage& cage) {
  setenv("QUASI_CAGE", cage.summary().c_str(), 1);
  setenv("QUASI_CAGE_WHOLE", cage.is_whole() ? "1" : "0", 1);
  std::vector<std::string> words = arguments.program;
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  std::cerr << "error: cannot start '" << words[0] << "' in its cage: " << std::strerror(errno)
            << "; is its folder among those it may read?\n";
  return kNotStarted;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"quasi-cage " QUASI_VERSION ": runs a program that reaches little of this machine"};
  app.set_version_flag("--version", "quasi-cage " QUASI_VERSION, "print the version and exit");
  app.add_option("--read", arguments.readable, "file or folder that the program may read")
      ->allow_extra_args(false);
  app.add_option("--write", arguments.writable, "folder that the program may write in")
      ->allow_extra_args(false);
  app.add_flag("--processes", arguments.processes,
               "the program may start processes and open sockets, as an MPI launcher must");
  app.add_flag("--network", arguments.network, "leave the network as it is");
  app.add_flag("--probe", arguments.probe, "print the walls that this machine permits, as JSON");
  app.add_option("PROGRAM", arguments.program, "after --: absolute path and arguments");
  CLI11_PARSE(app, argc, argv);
  if (!arguments.probe && arguments.program.empty()) {
    std::cerr << "error: no program was given; usage: quasi-cage [OPTIONS] -- PROGRAM [ARGUMENT]\n";
    return kUsage;
  }
  const Cage cage = enter_cage(rules_of(arguments));
  return arguments.probe ? print_walls(cage) : become(arguments, cage);
}

}  // namespace
}  // namespace quasi

int main(int argc, char** argv) { return quasi::run(argc, argv); }
