#include "client/input/command_tree.hpp"

#include "client/input/key_help.hpp"
#include "client/input/unknown_words.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

std::string kinds() {
  std::string list;
  for (const std::string& kind : wire::offered_kinds()) list += (list.empty() ? "" : ", ") + kind;
  return list;
}

void add_files(CLI::App* app, JobArguments& job) {
  app->add_option("FILE", job.words,
                  "job files or TOML decks; or a KIND (" + kinds() + ") and its decks")
      ->type_name("");
}

void add_notify(CLI::App* app, std::string& command) {
  app->add_option("--notify", command,
                  "run this for each job that ends; $1 is its id, $2 its name, $3 its state")
      ->type_name("COMMAND");
}

}  // namespace

CLI::Option* list_option(CLI::App* app, const std::string& names, std::vector<std::string>& into,
                         const std::string& what, const std::string& type) {
  return app->add_option(names, into, what)->allow_extra_args(false)->type_name(type);
}

void add_job_ids(CLI::App* app, std::vector<std::string>& jobs) {
  app->add_option("JOB", jobs, "ids, names, 'last', or '@' for standard input")
      ->required()
      ->type_name("");
}

CommandTree::CommandTree(Arguments& arguments)
    : arguments_(arguments),
      app_("quasi " QUASI_VERSION ": phonons, subband electrons and quasiparticles as a service",
           "quasi") {
  app_.require_subcommand(0, 1);
  app_.fallthrough();
  app_.get_formatter()->column_width(30);
  app_.set_help_flag("-h,--help", "print this text and exit; 'quasi help COMMAND' says more");
  add_global_flags();
  add_submit();
  add_resubmit();
  add_validate();
  add_seeing();
  add_following();
  add_results();
  add_table();
  add_turns();
  add_pictures();
  add_access();
  add_here();
  add_diagnosis();
  app_.footer(
      "\nExamples:\n"
      "  quasi submit KIND DECK --set KEY=VALUE --watch\n"
      "  quasi list --state active\n"
      "  quasi fetch last -d out\n"
      "  quasi run deck.toml --device cpu      (no server needed)\n"
      "A job is named by its id, the beginning of it, or its name; 'last' is the newest "
      "submission, '@' reads ids from standard input.");
}

void CommandTree::add_global_flags() {
  const auto flag = [&](const char* names, bool& into, const char* text) {
    app_.add_flag(names, into, text)->group("Everywhere");
  };
  const auto value = [&](const char* names, auto& into, const char* text, const char* type) {
    app_.add_option(names, into, text)->type_name(type)->group("Everywhere");
  };
  value("--context", context_, "use [context.NAME] of the configuration", "NAME");
  value("--server", server_, "address of the server: HOST:PORT or unix:/PATH", "ADDRESS");
  flag("--json", json_, "print the result as one JSON document");
  flag("--jsonl", jsonl_, "print one JSON object a line, as things happen");
  value("-o", format_, "table, wide, name (ids alone), json, jsonl", "FORMAT");
  flag("-q,--quiet", arguments_.quiet, "print no notes on standard error");
  flag("-v,--verbose", arguments_.verbose, "print every detail of an error");
  flag("--no-color", arguments_.no_color, "print plain text (also: NO_COLOR, TERM=dumb)");
  value("--timeout", timeout_,
        "time limit of one call (15s), or of the waiting in watch, wait, submit", "TIME");
  flag("--print-config", print_config_, "show the configuration and where it comes from");
  flag("-V,--version", version_, "print the version and exit");
}

void CommandTree::add_deck_options(CLI::App* app, JobArguments& job) {
  list_option(app, "--set", job.settings, "override a key of the deck", "KEY=VALUE");
  list_option(app, "--input", job.inputs, "add a file: its place in the deck, and its path here",
              "SLOT=PATH");
  app->add_option("--device", job.device, "auto, cpu or cuda")->type_name("DEVICE");
  list_option(app, "--export", job.exports, "write a further format: bte, phono3py", "FORMAT");
}

void CommandTree::add_queue_options(CLI::App* app, JobArguments& job) {
  app->add_option("--name", job.name, "name of the job (that of the deck or the file)")
      ->type_name("TEXT");
  list_option(app, "--label", job.labels, "label to find jobs by: quasi list --label", "KEY=VALUE");
  app->add_option("--visibility", job.visibility, "private, or tenant: for your group");
  app->add_flag("--no-cache", job.no_cache, "compute, even if an equal job has the result");
  app->add_flag("--refresh", job.refresh, "compute, and offer the result to later jobs instead");
  app->add_option("--priority", job.priority, "-100 to 100, higher is sooner")->type_name("N");
  app->add_option("--max-runtime", job.max_runtime, "limit of one attempt, e.g. 2h")
      ->type_name("TIME");
  app->add_option("--max-attempts", job.max_attempts, "attempts, 1 to 10 (3)")->type_name("N");
  app->add_option("--gpus", job.gpus, "GPUs of one host, 0 to 16")->type_name("N");
  app->add_option("--pool", job.pool, "pool of workers (default)")->type_name("POOL");
  app->add_option("--ranks", job.ranks,
                  "MPI ranks that share them, 0 to 16 (0: one process uses all)")
      ->type_name("N");
}

void CommandTree::add_submit() {
  SubmitOptions& options = arguments_.submit;
  CLI::App* app = add_command("submit", "send jobs to the server", "Work", Words::kKindsAndFiles);
  add_files(app, options.job);
  add_deck_options(app, options.job);
  add_queue_options(app, options.job);
  add_sweeps(app);
  app->add_flag("-w,--watch", options.watch, "follow the jobs and print their results");
  app->add_flag("--wait", options.wait, "wait silently for their end");
  app->add_flag("--dry-run", options.dry_run, "check everything, send nothing");
  app->add_flag("--no-check", options.no_check, "do not run quasi-engine on the deck first");
  app->add_flag("--resume", options.resume, "repeat submissions that got no answer; safe");
  app->add_option("--forget", options.forget, "drop a submission that got no answer")
      ->type_name("REQUEST-ID");
  app->footer(
      "\nExamples:\n"
      "  quasi submit KIND DECK --set KEY=VALUE --watch\n"
      "  quasi submit deck.toml --name test --max-runtime 30m\n"
      "  quasi submit job1.toml job2.json -o name\n"
      "Exit status: 0 taken (with --watch or --wait: succeeded), 3 failed, 4 cancelled, 9 "
      "invalid input.");
}

void CommandTree::add_resubmit() {
  SubmitOptions& options = arguments_.resubmit;
  CLI::App* app = add_command("resubmit", "send jobs again, with the inputs on the server", "Work",
                              Words::kJobs);
  add_job_ids(app, options.job.words);
  add_deck_options(app, options.job);
  add_queue_options(app, options.job);
  add_wait_options(app, options.job);
  app->add_flag("-w,--watch", options.watch, "follow the jobs and print their results");
  app->add_flag("--wait", options.wait, "wait silently for their end");
  app->footer("\nExample:\n  quasi resubmit last --set KEY=VALUE --watch");
}

void CommandTree::add_validate() {
  CLI::App* app = add_command("validate", "check jobs and decks, and show the plan", "Work",
                              Words::kKindsAndFiles);
  add_files(app, arguments_.validate.job);
  add_deck_options(app, arguments_.validate.job);
  app->add_flag("--offline", arguments_.validate.offline, "do not ask the server's rules");
  app->footer("\nExample:\n  quasi validate deck.toml --set KEY=VALUE");
}

void CommandTree::add_seeing() {
  ListOptions& options = arguments_.list;
  CLI::App* app = add_command("list", "list jobs, newest first", "See", Words::kNothing);
  list_option(app, "--state", options.states, "e.g. running, failed; active, ended", "STATE")
      ->delimiter(',');
  list_option(app, "--kind", options.kinds, kinds(), "KIND")->delimiter(',');
  list_option(app, "--label", options.labels, "jobs with this label", "KEY=VALUE");
  app->add_option("--name", options.name, "jobs whose name begins so")->type_name("TEXT");
  app->add_option("--set", options.set, "jobs of this sweep")->type_name("SET");
  app->add_flag("--sets", options.sets, "list sweeps, with their jobs by state");
  app->add_option("--since", options.since, "submitted since, e.g. 2h, 3d")->type_name("TIME");
  app->add_option("--until", options.until, "submitted before that long ago")->type_name("TIME");
  app->add_option("-n,--limit", options.limit, "number of jobs")
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--all", options.all, "list every job");
  app->add_flag("--oldest-first", options.oldest_first, "oldest job first");
  app->footer("\nExample:\n  quasi list --state failed --since 1d -o name | quasi show @");

  app = add_command("show", "show everything about jobs, with their results", "See", Words::kJobs);
  add_job_ids(app, arguments_.show.jobs);

  app = add_command("devices", "list workers, their devices, and the jobs that run there", "See",
                    Words::kNothing);
  app->add_flag("--local", arguments_.devices.local, "list the devices of this machine instead");
}

void CommandTree::add_following() {
  CLI::App* app = add_command("watch", "follow jobs as they run, then print their results",
                              "Follow", Words::kJobs);
  app->add_option("JOB", arguments_.watch.jobs, "ids or names; none: all that have not ended")
      ->type_name("");
  add_notify(app, arguments_.watch.notify);
  app->footer("\nExample:\n  quasi watch last --notify 'notify-send \"$2 $3\"'");

  app = add_command("wait", "wait silently until jobs have ended", "Follow", Words::kJobs);
  add_job_ids(app, arguments_.wait.jobs);
  app->add_flag("--any", arguments_.wait.any, "until one of them has ended");
  add_notify(app, arguments_.wait.notify);
  app->footer("\nExample:\n  quasi wait last --timeout 30m && quasi fetch last");

  LogsOptions& logs = arguments_.logs;
  app = add_command("logs", "print the log of the engine", "Follow", Words::kJobs);
  app->add_option("JOB", logs.job, "id of one job")->required()->type_name("");
  app->add_flag("-f,--follow", logs.follow, "go on until the job ends");
  app->add_option("--attempt", logs.attempt, "number of the attempt (the newest)")->type_name("N");
}

void CommandTree::add_here() {
  RunCommandOptions& options = arguments_.run;
  CLI::App* app = add_command("run", "run a job on this machine, without a server", "Here",
                              Words::kKindsAndFiles);
  app->add_option("DECK", options.words, "KIND and a deck; or a TOML deck or job file alone")
      ->type_name("");
  list_option(app, "--set", options.settings, "override a key of the deck", "KEY=VALUE");
  app->add_option("-d,--output", options.output, "directory for the results (quasi-out)")
      ->type_name("DIR");
  app->add_flag("--force", options.force, "replace the results of an earlier run in DIR");
  app->add_option("--store", options.store,
                  "keep results here, and take the result of an equal earlier run")
      ->type_name("DIR");
  app->add_flag("--refresh", options.refresh, "with --store: run, and replace the kept result");
  app->add_option("--device", options.device, "auto, cpu, cuda:N, or several: cuda:0,cuda:1")
      ->type_name("DEVICE");
  list_option(app, "--export", options.exports, "write a further format: bte, phono3py", "FORMAT");
  app->add_flag_callback(
      "--converge", [&options] { options.settings.emplace_back("convergence_study=true"); },
      "run the convergence study of the kind: the job again with coarser numerics");
  app->add_option("--target-error", options.target_error_ev,
                  "choose the effort for error bars of at most EV, where the kind has such bars")
      ->type_name("EV");
  add_sweep_options(app, options.sweep);
  app->footer("\nExample:\n  quasi run KIND DECK --set KEY=VALUE -d out");

  add_command("version", "print the versions of this program and of the server", "Here",
              Words::kNothing);
  app = add_command("completion", "print a completion script for bash, zsh or fish", "Here",
                    Words::kShells);
  app->add_option("SHELL", shell_, "bash, zsh or fish")->required()->type_name("");
  app->footer("\nExample:\n  source <(quasi completion bash)");
  app = add_command("help", "print help of a command or of a key", "Here", Words::kCommands);
  app->add_option("COMMAND", help_about_, "a command or a key, e.g. submit or nx")->type_name("");
}

void CommandTree::add_diagnosis() {
  add_command("doctor", "check what is installed, reachable and able to run", "Here",
              Words::kNothing);
  BugReportOptions& options = arguments_.bug_report;
  CLI::App* app = add_command("bug-report", "write a file with all that a maintainer asks for",
                              "Here", Words::kJobs);
  app->add_option("JOB", options.job, "a job to include, with the end of its log")->type_name("");
  app->add_option("-o,--output", options.output, "file to write (quasi-bug-report-TIME.json)")
      ->type_name("FILE");
  app->footer("\nThe file holds no inputs, no labels and no values of environment variables.");
}

CLI::App* CommandTree::add_command(const std::string& name, const std::string& description,
                                   const std::string& group, Words words) {
  CLI::App* added = app_.add_subcommand(name, description)->group(group);
  added->set_help_flag("-h,--help", "print this text and exit");
  words_[name] = words;
  return added;
}

void CommandTree::set_format() {
  if ((json_ ? 1 : 0) + (jsonl_ ? 1 : 0) + (format_.empty() ? 0 : 1) > 1)
    throw Failure(ExitStatus::kUsage, "--json, --jsonl and -o exclude each other",
                  "keep one of them");
  if (json_) format_ = "json";
  if (jsonl_) format_ = "jsonl";
  static const std::map<std::string, Format> kFormats{
      {"", Format::kTable},    {"table", Format::kTable}, {"wide", Format::kWide},
      {"name", Format::kName}, {"json", Format::kJson},   {"jsonl", Format::kJsonl}};
  const auto format = kFormats.find(format_);
  if (format == kFormats.end())
    throw Failure(ExitStatus::kUsage, "-o: no format '" + format_ + "'",
                  "formats: table, wide, name, json, jsonl");
  arguments_.format = format->second;
}

void CommandTree::finish() {
  set_format();
  if (!context_.empty()) arguments_.config.context = context_;
  if (!server_.empty()) arguments_.config.server = server_;
  if (!timeout_.empty()) arguments_.config.timeout = timeout_;

  const auto chosen = app_.get_subcommands();
  if (version_ && chosen.empty()) return answer_text("quasi " QUASI_VERSION "\n");
  if (print_config_) {
    arguments_.command = "print-config";
    return;
  }
  if (chosen.empty()) throw Failure(ExitStatus::kUsage, "no command was given", "see: quasi help");
  arguments_.command = chosen.front()->get_name();
  if (arguments_.command == "help") answer_text(help_text(help_about_));
  if (arguments_.command == "completion")
    answer_text(completion_script(shell_, completion_table()));
}

void CommandTree::answer_text(const std::string& text) {
  arguments_.command = "text";
  arguments_.text = text;
}

std::string CommandTree::help_text(const std::string& about) {
  // Not app_.help(): that is the text of the command that was given, here "help" itself.
  if (about.empty())
    return app_.get_formatter()->make_help(&app_, "quasi", CLI::AppFormatMode::Normal);
  for (CLI::App* command : app_.get_subcommands(nullptr))
    if (command->get_name() == about) return command->help("quasi");
  if (const std::string text = key_help(about); !text.empty()) return text;
  throw unknown_help_failure(about, command_names(), documented_keys());
}

std::vector<std::string> CommandTree::command_names() {
  std::vector<std::string> names;
  for (const CLI::App* command : app_.get_subcommands(nullptr))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> CommandTree::flags_of(const CLI::App* command) const {
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

CompletionTable CommandTree::completion_table() {
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

}  // namespace quasi::client
