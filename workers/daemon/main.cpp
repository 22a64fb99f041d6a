// quasi-worker takes leases from the server and runs each attempt in its own quasi-engine. Read
// supervisor.hpp first: it owns the leases and the attempts. The folder `attempt` runs one attempt,
// `devices` lists devices, and `ports` holds the interfaces to the machine and the server.

#include <sys/stat.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "proto/wire/access/core_dumps.hpp"
#include "proto/wire/manager/mutex_checks.hpp"
#include "workers/daemon/daemon.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/join.hpp"

namespace quasi {
namespace {

void print_devices(const WorkerConfig& config, bool json) {
  const auto source = make_devices(config);
  nlohmann::json list = nlohmann::json::array();
  for (const WorkerDevice& device : source->devices()) {
    const DeviceHealth health = source->health(device);
    if (json)
      list.push_back({{"id", device.uuid},
                      {"model", device.model},
                      {"memory_bytes", device.memory_bytes},
                      {"free_bytes", health.free_bytes},
                      {"cuda", device.cuda},
                      {"mig", device.mig},
                      {"slots", device.slots},
                      {"processes", health.processes},
                      {"fault", health.fault ? nlohmann::json(*health.fault) : nlohmann::json()}});
    else
      std::printf("%-12s %s, %.1f GiB, %d slot(s)%s\n", device.uuid.c_str(), device.model.c_str(),
                  static_cast<double>(device.memory_bytes) / (1 << 30), device.slots,
                  health.fault ? (", " + *health.fault).c_str() : "");
  }
  if (json)
    std::cout << nlohmann::json{{"schema", "quasi.worker.v1"}, {"devices", list}}.dump(2) << '\n';
}

DaemonExit main_(int argc, char** argv, int* usage_status) {
  CLI::App app{"quasi-worker " QUASI_VERSION ": runs jobs of a quasi-server on this machine"};
  app.set_version_flag("--version", "quasi-worker " QUASI_VERSION, "print the version and exit");
  std::string file;
  bool print_config = false, check_config = false, json = false;
  std::map<std::string, std::string> flags;
  app.add_option("--config", file,
                 "configuration file; otherwise /etc/quasi/worker.toml if it exists");
  app.add_flag("--print-config", print_config,
               "print every value and where it came from, and stop");
  app.add_flag("--check-config", check_config, "say whether the configuration is sound, and stop");
  for (const ConfigKey& key : config_keys())
    app.add_option_function<std::string>(
           key.flag(),
           [&flags, &key](const std::string& text) { flags[std::string(key.name)] = text; },
           std::string(key.help) + " (" + key.get(WorkerConfig()) + ")")
        ->type_name("");
  CLI::App* devices = app.add_subcommand("devices", "what jobs could run on here");
  devices->add_flag("--json", json, "one JSON document");
  std::string code;
  CLI::App* join = app.add_subcommand("join", "exchange a code for this worker's token");
  join->add_option("CODE", code, "the code; '-' or none: read standard input")->type_name("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> words = app.remaining(true);
    const auto flag = std::find_if(words.begin(), words.end(),
                                   [](const std::string& word) { return word.starts_with("--"); });
    if (flag == words.end()) {
      std::cerr << "error: no command '" << words.front() << "'";
    } else {
      const std::string name = flag->substr(2, flag->find('=') - 2);
      const std::string nearest = nearest_flag(name);
      std::cerr << "error: no flag '--" << name << "'";
      if (!nearest.empty()) std::cerr << "; did you mean '" << nearest << "'?";
    }
    std::cerr << "\nsee: quasi-worker --help\n";
    *usage_status = 2;
    return DaemonExit::kClean;
  } catch (const CLI::ParseError& error) {
    *usage_status = app.exit(error) == 0 ? 0 : 2;
    return DaemonExit::kClean;
  }
  if (*join) {
    join_server(code, file.empty() ? "/etc/quasi/worker.toml" : file, std::cout);
    return DaemonExit::kClean;
  }
  const LoadedConfig loaded = load_config(file, flags);
  if (print_config) std::cout << loaded.print();
  if (check_config) std::cout << "the configuration is sound\n";
  if (*devices) print_devices(loaded.config, json);
  if (print_config || check_config || *devices) return DaemonExit::kClean;
  return serve(loaded.config);
}

}  // namespace
}  // namespace quasi

int main(int argc, char** argv) {
  ::umask(0077);  // Decks, results and logs of attempts must not be readable for other users.
  quasi::wire::forbid_core_dumps();
  quasi::wire::skip_mutex_checks();
  int usage_status = 0;
  try {
    const auto status = quasi::main_(argc, argv, &usage_status);
    return usage_status != 0 ? usage_status : static_cast<int>(status);
  } catch (const quasi::ConfigError& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(quasi::DaemonExit::kConfig);
  } catch (const quasi::DevicesLost& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(quasi::DaemonExit::kDevicesLost);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(quasi::DaemonExit::kUnexpected);
  }
}
