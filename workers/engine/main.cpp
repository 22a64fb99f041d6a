// quasi-engine runs one attempt of one job in its own process. It needs no network and no token.

#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "proto/wire/waiting_threads.hpp"
#include "workers/backend/error.hpp"
#include "workers/engine/deck_files.hpp"
#include "workers/engine/exec.hpp"
#include "workers/engine/rank_devices.hpp"
#include "workers/engine/run_task.hpp"
#include "workers/engine/task_registry.hpp"
#include "workers/engine/utf8.hpp"

namespace quasi {
namespace {

std::atomic<bool> interrupted{false};

/// Shows progress on a terminal in one line: live figures of the task and the time left at the
/// present pace. The line is rewritten at most ten times a second. Other outputs get plain lines.
class TerminalProgress : public Progress {
 public:
  TerminalProgress(bool quiet, Ranks& ranks)
      : quiet_(quiet || !ranks.leads()), terminal_(isatty(STDERR_FILENO) != 0), ranks_(ranks) {}
  ~TerminalProgress() override { clear(); }

  void metric(std::string_view name, double value) override {
    const std::lock_guard lock(mutex_);
    metrics_[std::string(name)] = value;
  }
  void log(std::string_view line) override {
    if (quiet_) return;
    const std::lock_guard lock(mutex_);
    clear();
    std::cerr << line << '\n';
  }
  void checkpoint_ready(const std::string&, std::int64_t) override {}
  bool cancelled() const override { return interrupted || ranks_.peer_failed(); }
  bool checkpoint_wanted() override { return false; }

 protected:
  void on_report(std::string_view phase, std::int64_t done, std::int64_t total) override {
    if (quiet_ || !terminal_) return;
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100) && done < total) return;
    last_ = now;
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
    if (phase != phase_) {
      phase_ = phase;
      began_ = now;
      began_share_ = share;
    }
    const std::size_t most = columns();
    std::string line;
    // A line that the terminal breaks cannot be rewritten. An item that does not fit is left out as
    // a whole.
    const auto add = [&](const char* form, auto... values) {
      char text[kLineLength];
      const int length = std::snprintf(text, sizeof text, form, values...);
      if (length > 0 && line.size() + static_cast<std::size_t>(length) <= most) line += text;
    };
    add("%s  %5.1f %%", phase_.c_str(), 100.0 * share);
    const double elapsed_s = std::chrono::duration<double>(now - began_).count();
    if (share < 1.0 && share - began_share_ > 0.01 && elapsed_s > 2.0) {
      const double left_s = elapsed_s * (1.0 - share) / (share - began_share_);
      left_s < 100.0 ? add(", about %.0f s left", left_s)
                     : add(", about %.0f min left", left_s / 60.0);
    }
    for (const auto& [name, value] : metrics_) add("  %s %.5g", name.c_str(), value);
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  static constexpr std::size_t kLineLength = 160;
  /// Returns the usable columns of the terminal. The last column is not used, because some
  /// terminals break the line there.
  static std::size_t columns() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
               ? std::min<std::size_t>(size.ws_col, kLineLength) - 1
               : 79;
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }
  bool quiet_;
  bool terminal_;
  Ranks& ranks_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{}, began_{};
  double began_share_ = 0;
  std::string phase_;
  std::map<std::string, double> metrics_;
  std::mutex mutex_;  ///< Several devices report from their own threads.
};

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
    TerminalProgress progress(arguments.quiet, ranks);
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

int main_(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"quasi-engine " QUASI_VERSION ": runs one job on this machine, with no server"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "quasi-engine " QUASI_VERSION, "print the version and exit");

  const auto common = [&](CLI::App* command) {
    command->add_option("KIND", arguments.kind, kind_names())->required();
    command->add_option("DECK", arguments.deck, "deck directory or TOML file")->required();
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
  };
  CLI::App* run_command = app.add_subcommand("run", "run a job here and now");
  common(run_command);
  run_command->add_option("-d,--output", arguments.output, "directory for the results")
      ->capture_default_str();
  run_command->add_flag_callback(
      "--converge", [&] { arguments.settings.emplace_back("convergence_study=true"); },
      "the convergence study of the kind: thermal on coarser meshes and with smaller widths, "
      "mosfet with half of every axis, gw with fewer bands, lower cut-offs and coarser grids");
  run_command->add_flag("--quiet", arguments.quiet, "no progress");
  CLI::App* validate_command = app.add_subcommand("validate", "check a deck and print the plan");
  common(validate_command);
  CLI::App* files_command =
      app.add_subcommand("files", "print the files that a deck reads, as one JSON document");
  files_command->add_option("KIND", arguments.kind, kind_names())->required();
  files_command->add_option("DECK", arguments.deck, "deck directory or TOML file")->required();
  CLI::App* devices_command = app.add_subcommand("devices", "what this program can run on here");
  devices_command->add_flag("--json", arguments.json, "one JSON document");
  ExecOptions exec;
  CLI::App* exec_command =
      app.add_subcommand("exec", "one attempt under quasi-worker; not for people");
  exec_command->add_option("--ipc-fd", exec.ipc_descriptor, "socket to the daemon")->required();
  exec_command->add_option("--parent", exec.parent, "process id of the daemon");
  std::string rank_socket;
  CLI::App* rank_command =
      app.add_subcommand("rank", "one MPI rank of such an attempt; not for people");
  rank_command->add_option("SOCKET", rank_socket, "where rank 0 is handed the socket to the daemon")
      ->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
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
  if (*exec_command) return exec_attempt(exec);
  if (*rank_command) return exec_rank(rank_socket);

  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });

  std::string message;
  std::unique_ptr<Ranks> joined;
  ExitStatus status = guarded(
      [&] {
        if (*run_command) {
          joined = join_ranks();
          run(arguments, joined ? *joined : one_rank());
        }
        if (*validate_command) validate(arguments);
        if (*files_command)
          std::cout << indented(describe_deck_files(arguments.kind, arguments.deck)) << '\n';
        if (*devices_command) print_devices(arguments.json);
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

}  // namespace
}  // namespace quasi

int main(int argc, char** argv) {
  quasi::sleep_while_waiting(argv);
  return quasi::main_(argc, argv);
}
