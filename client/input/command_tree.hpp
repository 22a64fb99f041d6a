#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "client/commands/completion.hpp"
#include "client/input/arguments.hpp"

namespace quasi::client {

/// Gives a command the positional argument JOB…, which names at least one job.
void add_job_ids(CLI::App* app, std::vector<std::string>& jobs);

/// Adds an option that may be repeated and takes one value each time.
CLI::Option* list_option(CLI::App* app, const std::string& names, std::vector<std::string>& into,
                         const std::string& what, const std::string& type);

/// The commands of the client and their flags, bound to one Arguments. Flags are declared nowhere
/// else: the help, the completion scripts and the search for a mistyped flag read this tree.
class CommandTree {
 public:
  explicit CommandTree(Arguments& arguments);

  CLI::App& app() { return app_; }

  /// Completes the arguments after parsing: the output format, the context and the command.
  /// @throws Failure (kUsage) if flags exclude each other or no command was given
  void finish();
  /// The help of the command or the key `about`, or of the client if it is empty.
  /// @throws Failure (kUsage) with near commands and keys for an unknown word
  std::string help_text(const std::string& about);
  /// Names of all commands.
  std::vector<std::string> command_names();
  /// Long and short flags that are understood beside a command: its own and the global ones.
  std::vector<std::string> flags_of(const CLI::App* command) const;

 private:
  using Words = CompletionCommand::Words;

  CLI::App* add_command(const std::string& name, const std::string& description,
                        const std::string& group, Words words);
  void add_global_flags();
  void add_deck_options(CLI::App* app, JobArguments& job);
  void add_queue_options(CLI::App* app, JobArguments& job);
  /// Adds the flags of a sweep that `submit` and `run` share.
  void add_sweep_options(CLI::App* app, SweepArguments& sweep);
  void add_wait_options(CLI::App* app, JobArguments& job);
  /// Adds the flags of sweeps and of waiting to `submit`.
  void add_sweeps(CLI::App* submit);
  void add_table();
  void add_submit();
  void add_resubmit();
  void add_validate();
  void add_seeing();
  void add_following();
  void add_results();
  void add_turns();
  void add_pictures();
  void add_access();
  void add_here();
  void add_diagnosis();
  void set_format();
  /// Makes `text` the whole answer to the command line.
  void answer_text(const std::string& text);
  CompletionTable completion_table();

  Arguments& arguments_;
  CLI::App app_;
  std::map<std::string, Words> words_;
  std::string context_, server_, timeout_, format_, shell_, help_about_;
  bool json_ = false, jsonl_ = false, print_config_ = false, version_ = false;
};

}  // namespace quasi::client
