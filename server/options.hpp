#pragma once

#include <cstdint>
#include <cstdlib>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "proto/wire/channel.hpp"
#include "server/api/local_address.hpp"
#include "server/api/services.hpp"
#include "server/api/tls_credentials.hpp"
#include "server/queue/queue_core.hpp"
#include "server/service/housekeeping.hpp"
#include "server/service/scrub.hpp"

namespace quasi::server {

/// All settings of the server. They are fixed before any part starts.
struct ServerOptions {
  std::string data_directory = "/var/lib/quasi";
  std::vector<std::string> listen = {wire::default_address(std::getenv("XDG_RUNTIME_DIR"))};
  /// Addresses at which workers alone are served; empty: workers call at those of clients.
  std::vector<std::string> worker_listen;
  TlsFiles tls;                ///< of the TCP addresses
  std::string metrics_listen;  ///< address of metrics; empty: none
  bool allow_network_file_system = false;
  bool reflection = true;
  std::string log_level = "info";
  std::int32_t readers = 4;
  std::int32_t file_threads = 4;
  std::int64_t tick_ms = 100;
  std::int64_t garbage_interval_ms = 600'000;
  std::int64_t shutdown_ms = 10'000;
  QueueOptions queue;
  ApiOptions api;
  RetentionOptions retention;
  ScrubOptions scrub;
};

/// The action that the command line requests.
enum class Action { kServe, kPrintConfig, kCheckConfig, kProbe, kExit };

struct CommandLine {
  Action action = Action::kServe;
  ServerOptions options;
  int exit_status = 0;  ///< exit status of kExit (--help, --version, a wrong flag)
  std::map<std::string, std::string> sources;  ///< source of each key that was set
};

/// Reads the settings. Later sources win: built-in values, /etc/quasi/server.toml (or --config),
/// environment variables QUASI_SERVER_*, flags. An unknown key is an error that names the nearest
/// key. Every value is checked.
/// @throws BadConfiguration naming the key, the value, the limit and the source.
CommandLine parse_command_line(int argc, const char* const* argv);

/// Prints each value and its source as TOML with comments.
void print_configuration(const CommandLine& line, std::ostream& out);

}  // namespace quasi::server
