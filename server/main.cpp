// quasi-server reads its options, builds the server, and serves until a signal arrives.

#include <google/protobuf/stubs/logging.h>
#include <sys/stat.h>

#include <csignal>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "proto/wire/access/core_dumps.hpp"
#include "proto/wire/manager/mutex_checks.hpp"
#include "proto/wire/manager/service_manager.hpp"
#include "server/api/probe.hpp"
#include "server/backup/commands.hpp"
#include "server/server.hpp"
#include "server/service/log.hpp"
#include "server/setup/setup.hpp"
#include "server/store/data_directory.hpp"
#include "server/store/file_system.hpp"
#include "server/store/sqlite.hpp"

namespace {

enum Exit {
  kOk = 0,
  kCorrupt = 65,
  kAlreadyRunning = 73,
  kIo = 74,
  kNotServing = 75,
  kPermissions = 77,
  kConfiguration = 78,
};

/// Commands that start no server.
constexpr std::pair<std::string_view, int (*)(int, const char* const*)> kCommands[] = {
    {"init", quasi::server::init_command},
    {"backup", quasi::server::backup_command},
    {"restore", quasi::server::restore_command},
    {"check", quasi::server::check_command},
};

int fail(int status, const std::string& what) {
  std::cerr << "quasi-server: " << what << '\n';
  return status;
}

quasi::server::Level level_of(const std::string& name) {
  using quasi::server::Level;
  if (name == "debug") return Level::kDebug;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  return Level::kInfo;
}

void tell_manager(const std::string& state) {
  using namespace quasi::server;
  const std::string failure = quasi::wire::notify_manager(state);
  if (!failure.empty())
    log(Level::kWarning, "manager_not_told", {{"state", state}, {"why", failure}});
}

int serve(const quasi::server::ServerOptions& options, const sigset_t& signals) {
  using namespace quasi::server;
  set_log_level(level_of(options.log_level));
  Server server(options);
  log(Level::kInfo, "ready",
      {{"version", QUASI_VERSION}, {"data_directory", options.data_directory}});
  tell_manager("READY=1");
  int signal = 0;
  sigwait(&signals, &signal);
  log(Level::kInfo, "stopping", {{"signal", std::to_string(signal)}});
  tell_manager("STOPPING=1");
  server.stop();
  log(Level::kInfo, "stopped");
  return kOk;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace quasi::server;
  // The signals are blocked before any thread starts, so that only sigwait receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  quasi::wire::forbid_core_dumps();
  quasi::wire::skip_mutex_checks();
  // Malformed requests are answered; a line for each would let any caller fill the log.
  google::protobuf::SetLogHandler(nullptr);
  ::umask(0077);  // only the owner may read the database, jobs and results
  try {
    if (argc > 1)
      for (const auto& [name, command] : kCommands)
        if (argv[1] == name) return command(argc - 1, argv + 1);
    const CommandLine line = parse_command_line(argc, argv);
    switch (line.action) {
      case Action::kExit:
        return line.exit_status;
      case Action::kCheckConfig:
        std::cout << "the configuration is sound\n";
        return kOk;
      case Action::kPrintConfig:
        print_configuration(line, std::cout);
        return kOk;
      case Action::kProbe: {
        const std::string health = probe(line.options.listen.front(), line.options.tls.ca);
        std::cout << health << '\n';
        return health == "SERVING" ? kOk : kNotServing;
      }
      case Action::kServe:
        break;
    }
    return serve(line.options, signals);
  } catch (const BadConfiguration& error) {
    return fail(kConfiguration, error.what());
  } catch (const NetworkFileSystem& error) {
    return fail(kConfiguration, error.what());
  } catch (const AlreadyRunning& error) {
    return fail(kAlreadyRunning, error.what());
  } catch (const SqliteError& error) {
    if (error.is_busy())
      return fail(kAlreadyRunning, std::string("another process holds a lock on quasi.db; end it, "
                                               "then start the server: ") +
                                       error.what());
    return fail(error.is_corrupt() ? kCorrupt : kIo, error.what());
  } catch (const FileError& error) {
    return fail(error.error == EACCES || error.error == EPERM ? kPermissions : kIo, error.what());
  } catch (const std::exception& error) {
    return fail(kConfiguration, error.what());
  }
}
