#pragma once

#include <string>
#include <vector>

namespace quasi::client {

/// What a shell may offer, taken from the program's own table of commands.
struct CompletionCommand {
  enum class Words { kNothing, kJobs, kFiles, kKindsAndFiles, kShells, kCommands };
  std::string name;
  std::string description;
  std::vector<std::string> flags;  ///< long ones, with their dashes
  Words words = Words::kNothing;
};

struct CompletionTable {
  std::vector<CompletionCommand> commands;
  std::vector<std::string> global_flags;
  std::vector<std::string> kinds;
};

/// A script to be sourced by "bash", "zsh" or "fish"; job ids are asked of the server when needed.
std::string completion_script(const std::string& shell, const CompletionTable& table);

}  // namespace quasi::client
