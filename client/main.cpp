// quasi, the client: calls the function of each command and converts failures to exit statuses.

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/diagnose/doctor.hpp"
#include "client/engine/interrupt.hpp"
#include "client/input/arguments.hpp"
#include "proto/wire/access/core_dumps.hpp"

namespace quasi::client {
namespace {

ExitStatus dispatch(Session& session, const Arguments& arguments) {
  const std::string& command = arguments.command;
  if (command == "submit") return submit(session, arguments.submit);
  if (command == "resubmit") return resubmit(session, arguments.resubmit);
  if (command == "validate") return validate(session, arguments.validate);
  if (command == "list") return list(session, arguments.list);
  if (command == "show") return show(session, arguments.show);
  if (command == "watch") return watch(session, arguments.watch);
  if (command == "wait") return wait(session, arguments.wait);
  if (command == "logs") return logs(session, arguments.logs);
  if (command == "fetch") return fetch(session, arguments.fetch);
  if (command == "table") return table(session, arguments.table);
  if (command == "cancel") return cancel(session, arguments.cancel);
  if (command == "delete") return delete_jobs(session, arguments.delete_jobs);
  if (command == "hold") return hold(session, arguments.hold);
  if (command == "release") return release(session, arguments.release);
  if (command == "reprioritise") return reprioritise(session, arguments.reprioritise);
  if (command == "why") return why(session, arguments.why);
  if (command == "usage") return usage(session, arguments.usage);
  if (command == "cache") return cache(session, arguments.cache);
  if (command == "plot") return plot(session, arguments.plot);
  if (command == "report") return report(session, arguments.report);
  if (command == "devices") return devices(session, arguments.devices);
  if (command == "whoami") return whoami(session);
  if (command == "login") return renew_token(session);
  if (command == "admin") return admin(session, arguments.admin);
  if (command == "version") return version(session);
  if (command == "doctor") return doctor(session);
  if (command == "bug-report") return bug_report(session, arguments.bug_report);
  throw Failure(ExitStatus::kUsage, "no command '" + command + "'", "see: quasi help");
}

void mention_pending(Console& console, const State& state, const Arguments& arguments) {
  if (arguments.command == "submit" &&
      (arguments.submit.resume || !arguments.submit.forget.empty()))
    return;
  const std::size_t count = state.pending_count();
  if (count > 0)
    console.note("note: " + std::to_string(count) +
                 (count == 1 ? " submission has" : " submissions have") +
                 " no answer yet; repeat with: quasi submit --resume");
}

ExitStatus run_command(Console& console, const Arguments& arguments) {
  // `run` needs no server, no configuration and no state.
  if (arguments.command == "run") return run(console, arguments.run);
  const Environment environment = [](const char* name) { return std::getenv(name); };
  if (arguments.command == "login" && !arguments.login.renew)
    return login(console, environment, arguments.login);
  const Config config = load_config(config_files(environment), environment, arguments.config);
  if (arguments.command == "print-config") {
    console.data(describe(config));
    return ExitStatus::kOk;
  }
  const State state(config.state_directory.value);
  const bool waits =
      arguments.command == "watch" || arguments.command == "wait" ||
      (arguments.command == "submit" && (arguments.submit.watch || arguments.submit.wait)) ||
      (arguments.command == "resubmit" && (arguments.resubmit.watch || arguments.resubmit.wait));
  // If --timeout limits the waiting, a single call keeps its default limit.
  ConfigFlags call_flags = arguments.config;
  if (waits) call_flags.timeout.reset();
  const Config calls = load_config(config_files(environment), environment, call_flags);
  Connection server(config.address.value, calls.timeout_s.value,
                    {.token_file = config.token_file.value, .ca_file = config.ca.value});
  Session session{.console = console,
                  .config = config,
                  .state = state,
                  .server = server,
                  .timeout_given = arguments.config.timeout.has_value()};
  mention_pending(console, state, arguments);
  return dispatch(session, arguments);
}

/// Runs a command. Only this function catches failures.
ExitStatus guarded(Console& console, const std::function<ExitStatus()>& body) {
  try {
    const ExitStatus status = body();
    console.flush();
    return status;
  } catch (const Failure& failure) {
    console.fail(failure);
    std::fflush(stdout);
    return failure.status;
  } catch (const std::exception& error) {
    Failure failure(ExitStatus::kUnexpected, std::string("unexpected: ") + error.what(),
                    "this is a bug in quasi; please report it with the command that you typed");
    console.fail(failure);
    std::fflush(stdout);
    return failure.status;
  }
}

int main_(int argc, char** argv) {
  interrupt::install();
  wire::forbid_core_dumps();
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  Console plain(Format::kTable, Terminal::detect(false, environment), false, false);
  Arguments arguments;
  const ExitStatus parsed = guarded(plain, [&] {
    arguments = parse_arguments({argv + 1, argv + argc});
    if (arguments.command == "text") plain.data(arguments.text);
    return ExitStatus::kOk;
  });
  if (parsed != ExitStatus::kOk || arguments.command == "text") return static_cast<int>(parsed);
  Console console(arguments.format, Terminal::detect(arguments.no_color, environment),
                  arguments.quiet, arguments.verbose);
  return static_cast<int>(guarded(console, [&] { return run_command(console, arguments); }));
}

}  // namespace
}  // namespace quasi::client

int main(int argc, char** argv) { return quasi::client::main_(argc, argv); }
