#include "client/commands/completion.hpp"

#include <algorithm>
#include <set>

#include "client/failure.hpp"
#include "client/input/key_help.hpp"
#include "client/views/job_view.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

using Words = CompletionCommand::Words;

constexpr const char* kJobWords = "last $(quasi list -o name --limit 50 2>/dev/null)";

std::string join_words(const std::vector<std::string>& words, const char* between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> names(const CompletionTable& table) {
  std::vector<std::string> all;
  for (const CompletionCommand& command : table.commands) all.push_back(command.name);
  return all;
}

/// Escapes text for use between single quotes.
std::string quoted(std::string text) {
  std::erase(text, '\'');
  return text;
}

std::vector<std::string> all_flags(const CompletionCommand& command, const CompletionTable& table) {
  std::vector<std::string> flags = command.flags;
  flags.insert(flags.end(), table.global_flags.begin(), table.global_flags.end());
  return flags;
}

/// The shell words that may complete a word of this command. Files are offered in addition.
std::string offered(const CompletionCommand& command, const CompletionTable& table) {
  switch (command.words) {
    case Words::kJobs:
      return kJobWords;
    case Words::kKindsAndFiles:
      return join_words(table.kinds);
    case Words::kShells:
      return "bash zsh fish";
    case Words::kCommands:
      return join_words(names(table));
    default:
      return "";
  }
}

bool offers_files(const CompletionCommand& command) {
  return command.words == Words::kFiles || command.words == Words::kKindsAndFiles;
}

/// Returns the keys of decks, each followed by an equals sign, from the reference pages.
std::vector<std::string> deck_keys() {
  std::set<std::string> keys;
  const std::vector<std::string>& kinds = wire::offered_kinds();
  for (const ReferencePage& page : reference_pages()) {
    const std::string kind = page.name.substr(0, page.name.find('_'));
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    for (const KeyEntry& entry : key_entries(page))
      for (const std::string& key : entry.keys) keys.insert(key + '=');
  }
  return {keys.begin(), keys.end()};
}

/// Returns a `case` of bash that answers with the values of the flag before the cursor.
std::string bash_values() {
  std::string text = "  case ${COMP_WORDS[COMP_CWORD-1]} in\n";
  for (const CompletionValues& values : completion_values()) {
    text += "    " + values.flag + ")\n";
    if (values.words.front().ends_with('=')) text += "      compopt -o nospace 2>/dev/null\n";
    text += "      COMPREPLY=($(compgen -W '" + join_words(values.words) +
            "' -- \"$cur\"))\n      return\n      ;;\n";
  }
  return text + "  esac\n";
}

std::string zsh_values() {
  std::string text = "  case ${words[CURRENT-1]} in\n";
  for (const CompletionValues& values : completion_values())
    text += "    " + values.flag + ") compadd " +
            (values.words.front().ends_with('=') ? "-S '' " : "") + "-- " +
            join_words(values.words) + "; return ;;\n";
  return text + "  esac\n";
}

/// Returns the end of a line of fish that declares `flag`: the values that follow it.
std::string fish_values(const std::vector<CompletionValues>& all, const std::string& flag) {
  for (const CompletionValues& values : all)
    if (values.flag == flag) return " -x -a '" + join_words(values.words) + "'\n";
  return "\n";
}

std::string bash_script(const CompletionTable& table) {
  std::string text =
      "# quasi completion for bash; use: source <(quasi completion bash)\n"
      "_quasi() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} command= word flags= words= files=\n"
      "  COMPREPLY=()\n" +
      bash_values() +
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in -*) ;; *) command=$word; break ;; esac\n"
      "  done\n"
      "  case $command in\n";
  for (const CompletionCommand& command : table.commands) {
    text +=
        "    " + command.name + ")\n      flags='" + join_words(all_flags(command, table)) + "'\n";
    if (offers_files(command)) text += "      files=yes\n";
    const std::string words = offered(command, table);
    if (!words.empty()) text += "      [[ $cur == -* ]] || words=\"" + words + "\"\n";
    text += "      ;;\n";
  }
  text += "    *)\n      flags='" + join_words(table.global_flags) + "'\n      words='" +
          join_words(names(table)) +
          "'\n      ;;\n"
          "  esac\n"
          "  if [[ $cur == -* ]]; then\n"
          "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
          "  else\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    if [[ -n $files ]]; then\n"
          "      compopt -o filenames 2>/dev/null\n"
          "      local IFS=$'\\n'\n"
          "      COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
          "    fi\n"
          "  fi\n"
          "}\n"
          "complete -F _quasi quasi\n";
  return text;
}

std::string zsh_script(const CompletionTable& table) {
  std::string text =
      "#compdef quasi\n"
      "# quasi completion for zsh; use: source <(quasi completion zsh)\n"
      "_quasi() {\n"
      "  local command= word\n" +
      zsh_values() +
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case $word in -*) ;; *) command=$word; break ;; esac\n"
      "  done\n"
      "  case $command in\n";
  for (const CompletionCommand& command : table.commands) {
    text += "    " + command.name +
            ")\n      if [[ ${words[CURRENT]} == -* ]]; then\n        compadd -- " +
            join_words(all_flags(command, table)) + "\n";
    const std::string words = offered(command, table);
    if (!words.empty() || offers_files(command)) {
      text += "      else\n";
      if (!words.empty()) text += "        compadd -- " + words + "\n";
      if (offers_files(command)) text += "        _files\n";
    }
    text += "      fi\n      ;;\n";
  }
  text += "    *)\n      if [[ ${words[CURRENT]} == -* ]]; then\n        compadd -- " +
          join_words(table.global_flags) + "\n      else\n        local -a commands=(\n";
  for (const CompletionCommand& command : table.commands)
    text += "          '" + command.name + ":" + quoted(command.description) + "'\n";
  text +=
      "        )\n        _describe command commands\n      fi\n      ;;\n"
      "  esac\n"
      "}\n"
      "compdef _quasi quasi\n";
  return text;
}

std::string fish_script(const CompletionTable& table) {
  const std::vector<CompletionValues> values = completion_values();
  std::string text =
      "# quasi completion for fish; use: quasi completion fish | source\n"
      "complete -c quasi -f\n";
  for (const CompletionCommand& command : table.commands) {
    text += "complete -c quasi -n __fish_use_subcommand -a " + command.name + " -d '" +
            quoted(command.description) + "'\n";
    const std::string here =
        "complete -c quasi -n '__fish_seen_subcommand_from " + command.name + "' ";
    for (const std::string& flag : command.flags)
      text += here + "-l " + flag.substr(2) + fish_values(values, flag);
    if (offers_files(command)) text += here + "-F\n";
    if (command.words == Words::kJobs)
      text += here + "-a 'last (quasi list -o name --limit 50 2>/dev/null)'\n";
    else if (const std::string words = offered(command, table); !words.empty())
      text += here + "-a '" + words + "'\n";
  }
  for (const std::string& flag : table.global_flags)
    text += "complete -c quasi -l " + flag.substr(2) + "\n";
  return text;
}

}  // namespace

std::vector<CompletionValues> completion_values() {
  std::vector<std::string> states = state_words();
  states.insert(states.end(), {"active", "ended"});
  return {{"--state", states},
          {"--kind", wire::offered_kinds()},
          {"--device", {"auto", "cpu", "cuda"}},
          {"--visibility", {"private", "tenant"}},
          {"--set", deck_keys()}};
}

std::string completion_script(const std::string& shell, const CompletionTable& table) {
  if (shell == "bash") return bash_script(table);
  if (shell == "zsh") return zsh_script(table);
  if (shell == "fish") return fish_script(table);
  throw Failure(ExitStatus::kUsage, "no completion for '" + shell + "'",
                "choose one of bash, zsh, fish");
}

}  // namespace quasi::client
