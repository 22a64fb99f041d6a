#include "client/input/arguments.hpp"

#include <algorithm>

#include "client/input/command_tree.hpp"
#include "client/input/unknown_words.hpp"

namespace quasi::client {

namespace {

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// The first word in the place of a command, if it is no command.
const std::string* mistyped_command(CommandTree& tree, const std::vector<std::string>& words) {
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

[[noreturn]] void refuse(CommandTree& tree, const std::vector<std::string>& words,
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
    throw unknown_flag_failure(flag, command == nullptr ? "" : command->get_name(), known);
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
  CommandTree tree(arguments);
  if (words.empty()) {
    arguments.command = "text";
    arguments.text = tree.app().help();
    return arguments;
  }
  if (const std::string* mistyped = mistyped_command(tree, words))
    throw unknown_command_failure(*mistyped, tree.command_names());
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
