#include "client/input/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/commands/completion.hpp"
#include "proto/wire/validate.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

using Words = CompletionCommand::Words;

constexpr const char* kOverview =
    "quasi " QUASI_VERSION ": phonons, subband electrons and quasiparticles as a service";

/// The tree of commands, bound to one Arguments. The only place where flags are declared.
class Tree {
 public:
  explicit Tree(Arguments& arguments) : arguments_(arguments), app_(kOverview, "quasi") {
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    app_.get_formatter()->column_width(30);
    app_.set_help_flag("-h,--help", "this text; 'quasi help COMMAND' has more");
    add_global_flags();
    add_submit();
    add_validate();
    add_seeing();
    add_following();
    add_results();
    add_here();
    app_.footer(
        "\nExamples:\n"
        "  quasi submit thermal examples/thermal/silicon --set T=300 --watch\n"
        "  quasi list --state active\n"
        "  quasi fetch last -d out\n"
        "  quasi run mosfet deck.toml --device cpu      (no server needed)\n"
        "Job ids may be shortened; 'last' is the newest submission, '@' reads ids from standard "
        "input.");
  }

  CLI::App& app() { return app_; }

  /// After parsing: flags that exclude each other, and the command's name.
  void finish() {
    const int formats = (json_ ? 1 : 0) + (jsonl_ ? 1 : 0) + (format_.empty() ? 0 : 1);
    if (formats > 1)
      throw Failure(ExitStatus::kUsage, "--json, --jsonl and -o exclude each other",
                    "keep one of them");
    if (json_ || format_ == "json")
      arguments_.format = Format::kJson;
    else if (jsonl_ || format_ == "jsonl")
      arguments_.format = Format::kJsonl;
    else if (format_ == "wide")
      arguments_.format = Format::kWide;
    else if (format_ == "name")
      arguments_.format = Format::kName;
    else if (!format_.empty() && format_ != "table")
      throw Failure(ExitStatus::kUsage, "-o: no format '" + format_ + "'",
                    "formats: table, wide, name, json, jsonl");
    if (!context_.empty()) arguments_.config.context = context_;
    if (!server_.empty()) arguments_.config.server = server_;
    if (!timeout_.empty()) arguments_.config.timeout = timeout_;

    const auto chosen = app_.get_subcommands();
    if (version_ && chosen.empty()) {
      arguments_.command = "text";
      arguments_.text = "quasi " QUASI_VERSION "\n";
      return;
    }
    if (print_config_) {
      arguments_.command = "print-config";
      return;
    }
    if (chosen.empty())
      throw Failure(ExitStatus::kUsage, "no command was given", "see: quasi help");
    arguments_.command = chosen.front()->get_name();
    if (arguments_.command == "help") {
      arguments_.command = "text";
      arguments_.text = help_text(help_about_);
    } else if (arguments_.command == "completion") {
      arguments_.command = "text";
      arguments_.text = completion_script(shell_, completion_table());
    }
  }

  std::string help_text(const std::string& about) {
    // Not app_.help(): that is the text of the command that was given, here "help" itself.
    if (about.empty())
      return app_.get_formatter()->make_help(&app_, "quasi", CLI::AppFormatMode::Normal);
    for (CLI::App* command : app_.get_subcommands(nullptr))
      if (command->get_name() == about) return command->help("quasi");
    throw unknown_command(about);
  }

  Failure unknown_command(const std::string& name) {
    std::vector<std::string> known;
    for (const CLI::App* command : app_.get_subcommands(nullptr))
      known.push_back(command->get_name());
    const std::string nearest = nearest_name(name, known);
    return Failure(
        ExitStatus::kUsage,
        "no command '" + name + "'" + (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
        "see: quasi help");
  }

  /// Long and short flags that are understood at a command's place.
  std::vector<std::string> flags_of(const CLI::App* command) const {
    std::vector<std::string> flags;
    const auto add = [&](const CLI::App& app) {
      for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
        for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
      }
    };
    if (command != nullptr) add(*command);
    add(app_);
    return flags;
  }

 private:
  CLI::App* command(const std::string& name, const std::string& description,
                    const std::string& group, Words words) {
    CLI::App* added = app_.add_subcommand(name, description);
    added->group(group);
    added->set_help_flag("-h,--help", "this text");
    words_[name] = words;
    return added;
  }

  static CLI::Option* list_option(CLI::App* app, const std::string& names,
                                  std::vector<std::string>& into, const std::string& what,
                                  const std::string& type) {
    return app->add_option(names, into, what)->allow_extra_args(false)->type_name(type);
  }

  void add_global_flags() {
    const std::string group = "Everywhere";
    app_.add_option("--context", context_, "which [context.NAME] of the configuration")
        ->type_name("NAME")
        ->group(group);
    app_.add_option("--server", server_, "HOST:PORT or unix:/PATH of the server")
        ->type_name("ADDRESS")
        ->group(group);
    app_.add_flag("--json", json_, "the result as one JSON document")->group(group);
    app_.add_flag("--jsonl", jsonl_, "one JSON object a line, as things happen")->group(group);
    app_.add_option("-o", format_, "table, wide, name (ids alone), json, jsonl")
        ->type_name("FORMAT")
        ->group(group);
    app_.add_flag("-q,--quiet", arguments_.quiet, "no notes on standard error")->group(group);
    app_.add_flag("-v,--verbose", arguments_.verbose, "every detail of an error")->group(group);
    app_.add_flag("--no-color", arguments_.no_color, "plain text (also: NO_COLOR, TERM=dumb)")
        ->group(group);
    app_.add_option("--timeout", timeout_,
                    "limit of one call (15s); of the waiting in watch, wait, submit")
        ->type_name("TIME")
        ->group(group);
    app_.add_flag("--print-config", print_config_, "show the configuration and where it comes from")
        ->group(group);
    app_.add_flag("--version", version_, "of this program")->group(group);
  }

  void add_job_arguments(CLI::App* app, JobArguments& job, bool for_submission) {
    app->add_option("FILE", job.words,
                    "job files or TOML decks; or KIND (thermal, mosfet, gw) and its decks")
        ->type_name("");
    list_option(app, "--set", job.settings, "override a key of the deck, e.g. T=300", "KEY=VALUE");
    list_option(app, "--input", job.inputs, "a further input, e.g. deck/WFN=../scf/WFN",
                "SLOT=PATH");
    app->add_option("--device", job.device, "auto, cpu or cuda")->type_name("DEVICE");
    list_option(app, "--export", job.exports, "further output formats, e.g. bte", "FORMAT");
    if (!for_submission) return;
    app->add_option("--name", job.name, "instead of the deck's or the file's")->type_name("TEXT");
    list_option(app, "--label", job.labels, "to find jobs by: quasi list --label", "KEY=VALUE");
    app->add_option("--priority", job.priority, "-100 to 100, higher is sooner")->type_name("N");
    app->add_option("--max-runtime", job.max_runtime, "of one attempt, e.g. 2h")->type_name("TIME");
    app->add_option("--max-attempts", job.max_attempts, "1 to 10 (3)")->type_name("N");
    app->add_option("--gpus", job.gpus, "GPUs of one host, 0 to 16")->type_name("N");
    app->add_option("--ranks", job.ranks,
                    "MPI ranks that share them, 0 to 16 (0: one process uses all)")
        ->type_name("N");
  }

  void add_submit() {
    SubmitOptions& options = arguments_.submit;
    CLI::App* app = command("submit", "send jobs to the server", "Work", Words::kKindsAndFiles);
    add_job_arguments(app, options.job, true);
    app->add_flag("-w,--watch", options.watch, "follow the jobs and print their results");
    app->add_flag("--wait", options.wait, "wait silently for their end");
    app->add_flag("--dry-run", options.dry_run, "check everything, send nothing");
    app->add_flag("--no-check", options.no_check, "do not run quasi-engine on the deck first");
    app->add_flag("--resume", options.resume, "repeat submissions that got no answer; safe");
    app->add_option("--forget", options.forget, "drop such a submission")->type_name("REQUEST-ID");
    app->footer(
        "\nExamples:\n"
        "  quasi submit thermal examples/thermal/silicon --set T=300 --watch\n"
        "  quasi submit deck.toml --name test --max-runtime 30m\n"
        "  quasi submit job1.toml job2.json -o name\n"
        "Exit status: 0 taken (with --watch or --wait: succeeded), 3 failed, 4 cancelled, 9 "
        "invalid input.");
  }

  void add_validate() {
    CLI::App* app = command("validate", "check jobs and decks, and show the plan", "Work",
                            Words::kKindsAndFiles);
    add_job_arguments(app, arguments_.validate.job, false);
    app->add_flag("--offline", arguments_.validate.offline, "do not ask the server's rules");
    app->footer("\nExample:\n  quasi validate thermal examples/thermal/silicon --set T=300");
  }

  void add_seeing() {
    ListOptions& options = arguments_.list;
    CLI::App* app = command("list", "jobs, newest first", "See", Words::kNothing);
    list_option(app, "--state", options.states, "e.g. running, failed; active, ended", "STATE")
        ->delimiter(',');
    list_option(app, "--kind", options.kinds, "thermal, mosfet, gw", "KIND")->delimiter(',');
    list_option(app, "--label", options.labels, "jobs with this label", "KEY=VALUE");
    app->add_option("--name", options.name, "jobs whose name begins so")->type_name("TEXT");
    app->add_option("--since", options.since, "submitted since, e.g. 2h, 3d")->type_name("TIME");
    app->add_option("--until", options.until, "submitted before that long ago")->type_name("TIME");
    app->add_option("-n,--limit", options.limit, "how many")->type_name("N")->capture_default_str();
    app->add_flag("--all", options.all, "every one");
    app->add_flag("--oldest-first", options.oldest_first, "the other way round");
    app->footer("\nExample:\n  quasi list --state failed --since 1d -o name | quasi show @");

    app = command("show", "everything about jobs, with their results", "See", Words::kJobs);
    jobs_positional(app, arguments_.show.jobs);

    app = command("devices", "workers, their devices, and what runs there", "See", Words::kNothing);
    app->add_flag("--local", arguments_.devices.local, "of this machine instead");
  }

  void add_following() {
    CLI::App* app = command("watch", "follow jobs as they run, then print their results", "Follow",
                            Words::kJobs);
    app->add_option("JOB", arguments_.watch.jobs, "ids; none: all that have not ended")
        ->type_name("");

    app = command("wait", "wait silently until jobs have ended", "Follow", Words::kJobs);
    jobs_positional(app, arguments_.wait.jobs);
    app->add_flag("--any", arguments_.wait.any, "until one of them has");
    app->footer("\nExample:\n  quasi wait last --timeout 30m && quasi fetch last");

    LogsOptions& logs = arguments_.logs;
    app = command("logs", "what the engine wrote", "Follow", Words::kJobs);
    app->add_option("JOB", logs.job, "id of one job")->required()->type_name("");
    app->add_flag("-f,--follow", logs.follow, "go on until the job ends");
    app->add_option("--attempt", logs.attempt, "its number; without it the newest")->type_name("N");
  }

  void add_results() {
    FetchOptions& options = arguments_.fetch;
    CLI::App* app = command("fetch", "result files, verified", "Results", Words::kJobs);
    jobs_positional(app, options.jobs);
    app->add_option("-d,--directory", options.directory, "where to (a directory named by the id)")
        ->type_name("DIR");
    list_option(app, "--artifact", options.artifacts, "only this file", "NAME");
    app->add_flag("--force", options.force, "replace files that differ");
    app->footer("\nA broken download is continued by the same command.");

    CancelOptions& cancel = arguments_.cancel;
    app = command("cancel", "stop jobs, or take them out of the queue", "Results", Words::kJobs);
    jobs_positional(app, cancel.jobs);
    app->add_option("--reason", cancel.reason, "for the job's history")->type_name("TEXT");
    app->add_flag("-y,--yes", cancel.yes, "do not ask, also for several jobs");
  }

  void add_here() {
    RunCommandOptions& options = arguments_.run;
    CLI::App* app =
        command("run", "a job on this machine, with no server", "Here", Words::kKindsAndFiles);
    app->add_option("DECK", options.words, "KIND and a deck; or a TOML deck or job file alone")
        ->type_name("");
    list_option(app, "--set", options.settings, "override a key of the deck, e.g. T=300",
                "KEY=VALUE");
    app->add_option("-d,--output", options.output, "directory for the results (quasi-out)")
        ->type_name("DIR");
    app->add_option("--device", options.device, "auto, cpu, cuda:N, or several: cuda:0,cuda:1")
        ->type_name("DEVICE");
    list_option(app, "--export", options.exports, "further output formats, e.g. bte", "FORMAT");
    app->add_flag_callback(
        "--converge", [&options] { options.settings.emplace_back("convergence_study=true"); },
        "the convergence study of the kind: thermal on coarser meshes and with smaller widths, "
        "mosfet with half of every axis, gw "
        "with fewer bands, lower cut-offs and coarser grids");
    app->footer("\nExample:\n  quasi run thermal examples/thermal/silicon --set T=300 -d out");

    command("version", "of this program and of the server", "Here", Words::kNothing);
    app = command("completion", "a script for bash, zsh or fish", "Here", Words::kShells);
    app->add_option("SHELL", shell_, "bash, zsh or fish")->required()->type_name("");
    app->footer("\nExample:\n  source <(quasi completion bash)");
    app = command("help", "this text, or that of a command", "Here", Words::kCommands);
    app->add_option("COMMAND", help_about_, "e.g. submit; none: this program's own help")
        ->type_name("");
  }

  static void jobs_positional(CLI::App* app, std::vector<std::string>& jobs) {
    app->add_option("JOB", jobs, "ids, 'last', or '@' for standard input")
        ->required()
        ->type_name("");
  }

  CompletionTable completion_table() {
    CompletionTable table;
    const auto long_flags = [](const CLI::App& app) {
      std::vector<std::string> flags;
      for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
      return flags;
    };
    for (const CLI::App* app : app_.get_subcommands(nullptr)) {
      std::vector<std::string> flags = long_flags(*app);
      std::erase(flags, "--help");
      table.commands.push_back({.name = app->get_name(),
                                .description = app->get_description(),
                                .flags = std::move(flags),
                                .words = words_.at(app->get_name())});
    }
    table.global_flags = long_flags(app_);
    table.kinds = wire::offered_kinds();
    return table;
  }

  Arguments& arguments_;
  CLI::App app_;
  std::map<std::string, Words> words_;
  std::string context_, server_, timeout_, format_, shell_, help_about_;
  bool json_ = false, jsonl_ = false, print_config_ = false, version_ = false;
};

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// A word that stands where a command must, but is none.
const std::string* mistyped_command(Tree& tree, const std::vector<std::string>& words) {
  static const std::vector<std::string> with_value{"--context", "--server", "-o", "--timeout"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::find(with_value.begin(), with_value.end(), words[i]) != with_value.end()) {
      ++i;
      continue;
    }
    if (is_flag(words[i])) continue;
    for (const CLI::App* command : tree.app().get_subcommands(nullptr))
      if (command->get_name() == words[i]) return nullptr;
    return &words[i];
  }
  return nullptr;
}

[[noreturn]] void refuse(Tree& tree, const std::vector<std::string>& words,
                         const CLI::ParseError& error) {
  const auto chosen = tree.app().get_subcommands();
  const CLI::App* command = chosen.empty() ? nullptr : chosen.front();
  const std::string help =
      command == nullptr ? "see: quasi help" : "see: quasi help " + command->get_name();
  const std::vector<std::string> known = tree.flags_of(command);
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--") || flag == "--") continue;
    if (std::find(known.begin(), known.end(), flag) != known.end()) continue;
    // Without the dashes, which are alike in all of them.
    std::vector<std::string> names;
    for (const std::string& each : known) names.push_back(each.substr(2));
    std::string nearest = nearest_name(flag.substr(2), names);
    if (!nearest.empty()) nearest.insert(0, "--");
    throw Failure(ExitStatus::kUsage,
                  "no flag '" + flag + "'" +
                      (command == nullptr ? "" : " in quasi " + command->get_name()) +
                      (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
                  help);
  }
  std::string what = error.what();
  if (error.get_name() == "ExtrasError") what = "unexpected: " + what.substr(what.find(':') + 2);
  if (error.get_name() == "RequiredError")
    what = "missing: " + what.substr(0, what.find(" is required"));
  throw Failure(ExitStatus::kUsage, what, help);
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  Tree tree(arguments);
  if (words.empty()) {
    arguments.command = "text";
    arguments.text = tree.app().help();
    return arguments;
  }
  if (const std::string* mistyped = mistyped_command(tree, words))
    throw tree.unknown_command(*mistyped);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    tree.app().parse(std::move(reversed));
    tree.finish();
  } catch (const CLI::CallForHelp&) {
    const auto chosen = tree.app().get_subcommands();
    arguments.command = "text";
    arguments.text = tree.help_text(chosen.empty() ? "" : chosen.front()->get_name());
  } catch (const CLI::ParseError& error) {
    refuse(tree, words, error);
  }
  return arguments;
}

}  // namespace quasi::client
