#pragma once

#include <string>
#include <vector>

namespace quasi::client {

/// The words that a shell may offer, taken from the program's own table of commands.
struct CompletionCommand {
  enum class Words { kNothing, kJobs, kFiles, kKindsAndFiles, kShells, kCommands };
  std::string name;
  std::string description;
  std::vector<std::string> flags;  ///< long flags with their dashes
  Words words = Words::kNothing;
};

/// Holds the values that a shell may offer after a flag.
struct CompletionValues {
  std::string flag;  ///< with its dashes
  std::vector<std::string> words;
};

/// Returns values of flags that all commands share: states, kinds, devices, and keys followed by
/// an equals sign.
std::vector<CompletionValues> completion_values();

struct CompletionTable {
  std::vector<CompletionCommand> commands;
  std::vector<std::string> global_flags;
  std::vector<std::string> kinds;
};

/// A script that "bash", "zsh" or "fish" sources. The script asks the server for job ids when they
/// are needed.
std::string completion_script(const std::string& shell, const CompletionTable& table);

}  // namespace quasi::client
