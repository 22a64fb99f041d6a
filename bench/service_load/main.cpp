// A server under load: quasi-server runs as a process of its own, and its callers are threads of
// this program, on a Unix socket. docs/reference/promises.md holds the figures.
//
//   service_load CASE [SIZE]     the cases and their sizes are in cases.hpp

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "bench/service_load/cases.hpp"
#include "proto/wire/manager/mutex_checks.hpp"

int main(int argc, char** argv) {
  using namespace quasi::bench;
  quasi::wire::skip_mutex_checks();
  const std::map<std::string, void (*)(const std::filesystem::path&, int)> cases = {
      {"clients", many_clients}, {"calm_clients", calm_clients}, {"malformed", malformed_requests},
      {"readers", slow_readers}, {"watchers", watchers},         {"cancels", cancels},
      {"hits", cache_hits},      {"queue", long_queue},          {"soak", soak}};
  const auto chosen = argc > 1 ? cases.find(argv[1]) : cases.end();
  if (chosen == cases.end()) {
    std::string names;
    for (const auto& [name, run] : cases) names += " " + name;
    std::fprintf(stderr, "usage: service_load CASE [SIZE]; cases:%s\n", names.c_str());
    return 2;
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("quasi-load-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  int status = 0;
  try {
    chosen->second(folder, argc > 2 ? std::atoi(argv[2]) : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "service_load: %s\n", error.what());
    status = 1;
  }
  std::filesystem::remove_all(folder);
  return status;
}
