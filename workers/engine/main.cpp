// quasi-engine runs one attempt of one job in its own process. It needs no network and no token.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "proto/wire/waiting_threads.hpp"
#include "workers/backend/error.hpp"
#include "workers/engine/deck_files.hpp"
#include "workers/engine/exec.hpp"
#include "workers/engine/rank_devices.hpp"
#include "workers/engine/run_task.hpp"
#include "workers/engine/structure/structure_commands.hpp"
#include "workers/engine/task_registry.hpp"
#include "workers/engine/terminal_progress.hpp"
#include "workers/engine/utf8.hpp"

namespace quasi {
namespace {

std::atomic<bool> interrupted{false};  ///< set by SIGINT and SIGTERM

void print_devices(bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const Device& device : list_devices()) {
    if (json)
      list.push_back({{"name", device.name()},
                      {"model", device.model},
                      {"memory_bytes", device.memory_bytes},
                      {"compute_units", device.compute_units}});
    else
      std::printf("%-8s %s, %.1f GiB\n", device.name().c_str(), device.model.c_str(),
                  static_cast<double>(device.memory_bytes) / (1 << 30));
  }
  const std::string absence = cuda_absence();
  std::vector<std::string> kinds = task_kinds();
  for (auto& kind : exec_kinds()) kinds.push_back(std::move(kind));
  if (json)
    std::cout
        << nlohmann::json{{"devices", list}, {"cuda_absence", absence}, {"kinds", kinds}}.dump(2)
        << '\n';
  else if (!absence.empty())
    std::printf("no CUDA device: %s\n", absence.c_str());
}

struct Arguments {
  std::string kind;
  std::string deck;
  std::string output = "quasi-out";
  std::string device = "auto";
  std::vector<std::string> settings;
  std::string target_error_ev;  ///< of gw jobs; "": none
  std::vector<std::string> exports;
  bool json = false;
  bool quiet = false;
};

std::string kind_names() {
  std::string names;
  for (const std::string& kind : task_kinds()) names += (names.empty() ? "" : ", ") + kind;
  return names;
}

DeckSource deck_source(const Arguments& arguments) {
  DeckSource source{.path = arguments.deck, .settings = {}};
  for (const std::string& text : arguments.settings) source.settings.push_back(parse_setting(text));
  if (arguments.target_error_ev.empty()) return source;
  if (arguments.kind != "gw")
    throw InvalidInput("--target-error = " + arguments.target_error_ev +
                       " belongs to gw jobs, whose random vectors have intervals; this is a " +
                       arguments.kind +
                       " job. Leave it out; --converge estimates errors of every "
                       "kind");
  source.settings.push_back(
      parse_setting("pseudobands.target_error_ev=" + arguments.target_error_ev));
  return source;
}

void run(const Arguments& arguments, Ranks& ranks) {
  RunOptions options{.deck = deck_source(arguments),
                     .devices = devices_of_rank(arguments.device, ranks),
                     .output_directory = arguments.output,
                     .checkpoint_directory = std::filesystem::path(arguments.output) / "checkpoint",
                     .memory_budget_bytes = 0,
                     .exports = arguments.exports,
                     .ranks = &ranks};
  std::error_code failure;
  if (ranks.leads()) std::filesystem::create_directories(options.checkpoint_directory, failure);
  if (failure)
    throw StorageError("cannot create '" + options.output_directory.string() +
                       "': " + failure.message());
  // Removes the empty output directory however the run ends. A directory that holds a checkpoint
  // stays.
  struct LeaveNoEmptyFolder {
    const std::filesystem::path& folder;
    ~LeaveNoEmptyFolder() {
      std::error_code not_empty;
      std::filesystem::remove(folder, not_empty);
    }
  };
  std::optional<LeaveNoEmptyFolder> tidy;
  if (ranks.leads()) tidy.emplace(options.checkpoint_directory);
  nlohmann::json document;
  {
    TerminalProgress progress(arguments.quiet, ranks, interrupted);
    document = run_task(arguments.kind, options, progress);
  }
  if (!ranks.leads()) return;
  if (arguments.json)
    std::cout << indented(document) << '\n';
  else
    std::cout << make_task(arguments.kind)->table(document["summary"]);
}

void validate(const Arguments& arguments) {
  require_exports(arguments.kind, arguments.exports);
  const auto task = make_task(arguments.kind);
  const nlohmann::json report =
      task->validate(deck_source(arguments), devices_of(arguments.device).front());
  std::cout << indented(report) << '\n';
}

/// Makes OpenMP threads sleep while they wait. A worker and `quasi run` set this in the
/// environment. If the program is started by hand, it restarts itself once with this setting;
/// without /proc it continues as it is.
void sleep_while_waiting(char** argv) {
  if (let_children_sleep_while_waiting()) execv("/proc/self/exe", argv);
}

/// The command line: its commands and what their options say.
struct CommandLine {
  Arguments arguments;
  ExecOptions exec;
  std::string rank_socket;
  CLI::App app{"quasi-engine " QUASI_VERSION ": runs one job on this machine, with no server"};
  CLI::App *run, *validate, *files, *devices, *for_daemon, *for_rank;
  StructureCommands structure{app};

  CommandLine();
  /// @return the exit status, if the program ends with the parsing
  std::optional<int> parse(int argc, char** argv);

 private:
  CLI::App* add_command_on_deck(const char* name, const char* description);
  void add_job_options(CLI::App* command);
  void add_commands_of_daemon();
  int print_usage_error(const CLI::ParseError& error);
};

CommandLine::CommandLine() {
  app.require_subcommand(1);
  app.set_version_flag("--version", "quasi-engine " QUASI_VERSION, "print the version and exit");
  run = add_command_on_deck("run", "run a job here and now");
  add_job_options(run);
  run->add_option("-d,--output", arguments.output, "directory for the results")
      ->capture_default_str();
  run->add_flag_callback(
      "--converge", [this] { arguments.settings.emplace_back("convergence_study=true"); },
      "the convergence study of the kind: thermal on coarser meshes and with smaller widths, "
      "mosfet with half of every axis, gw with fewer bands, lower cut-offs and coarser grids");
  run->add_option("--target-error", arguments.target_error_ev,
                  "gw: choose windows and vectors for 95 % intervals of at most EV")
      ->type_name("EV");
  run->add_flag("--quiet", arguments.quiet, "no progress");
  validate = add_command_on_deck("validate", "check a deck and print the plan");
  add_job_options(validate);
  files = add_command_on_deck("files", "print the files that a deck reads, as one JSON document");
  devices = app.add_subcommand("devices", "list the devices that this program can run on");
  devices->add_flag("--json", arguments.json, "one JSON document");
  add_commands_of_daemon();
}

CLI::App* CommandLine::add_command_on_deck(const char* name, const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("KIND", arguments.kind, kind_names())->required();
  command->add_option("DECK", arguments.deck, "deck directory or TOML file")->required();
  return command;
}

void CommandLine::add_job_options(CLI::App* command) {
  command
      ->add_option("--device", arguments.device,
                   "auto, cpu, cuda:N, or several: cuda:0,cuda:1; under mpirun or srun the ranks "
                   "of a host share these out")
      ->capture_default_str();
  command->add_option("--set", arguments.settings, "override a key of the deck: key=value")
      ->allow_extra_args(false);
  command->add_option("--export", arguments.exports, "further formats, e.g. bte")
      ->allow_extra_args(false);
  command->add_flag("--json", arguments.json, "one JSON document on standard output");
}

void CommandLine::add_commands_of_daemon() {
  for_daemon = app.add_subcommand("exec", "one attempt under quasi-worker; not for people");
  for_daemon->add_option("--ipc-fd", exec.ipc_descriptor, "socket to the daemon")->required();
  for_daemon->add_option("--parent", exec.parent, "process id of the daemon");
  for_rank = app.add_subcommand("rank", "one MPI rank of such an attempt; not for people");
  for_rank->add_option("SOCKET", rank_socket, "where rank 0 is handed the socket to the daemon")
      ->required();
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return print_usage_error(error);
  }
  return {};
}

int CommandLine::print_usage_error(const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const auto extra = app.remaining(true);
  std::string what = error.what();
  if (!extra.empty())
    what = (chosen.empty() ? "no command '" : "unexpected: '") + extra.front() + "'";
  else if (chosen.empty())
    what = "no command was given";
  std::cerr << "error: " << what << "\nsee: quasi-engine "
            << (chosen.empty() ? "" : chosen.front()->get_name() + " ") << "--help\n";
  return static_cast<int>(ExitStatus::kUsage);
}

/// Runs the command of a person, and joins the ranks of an MPI launcher for it.
int run_command(const CommandLine& line) {
  std::string message;
  std::unique_ptr<Ranks> joined;
  ExitStatus status = guarded(
      [&] {
        if (*line.run) {
          joined = join_ranks();
          run(line.arguments, joined ? *joined : one_rank());
        }
        if (*line.validate) validate(line.arguments);
        if (*line.files)
          std::cout << indented(describe_deck_files(line.arguments.kind, line.arguments.deck))
                    << '\n';
        if (*line.devices) print_devices(line.arguments.json);
        line.structure.run();
      },
      &message);
  if (joined) {
    const Ranks::Ending ending = joined->end(static_cast<int>(status), message);
    status = static_cast<ExitStatus>(ending.status);
    message =
        (joined->size() > 1 ? "rank " + std::to_string(ending.rank) + ": " : "") + ending.message;
  }
  if (status != ExitStatus::kOk && (!joined || joined->leads()))
    std::cerr << "error: " << message << std::endl;
  return static_cast<int>(status);
}

int engine_main(int argc, char** argv) {
  CommandLine line;
  if (const auto ended = line.parse(argc, argv)) return *ended;
  if (*line.for_daemon) return exec_attempt(line.exec);
  if (*line.for_rank) return exec_rank(line.rank_socket);
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  return run_command(line);
}

}  // namespace
}  // namespace quasi

int main(int argc, char** argv) {
  quasi::sleep_while_waiting(argv);
  return quasi::engine_main(argc, argv);
}
