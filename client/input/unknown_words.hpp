#pragma once

#include <string>
#include <vector>

#include "client/failure.hpp"

namespace quasi::client {

/// The Failure (kUsage) for a word that is no command, with the nearest known command.
Failure unknown_command_failure(const std::string& name, const std::vector<std::string>& known);

/// The Failure (kUsage) for a word after `quasi help` that is neither command nor key. It suggests
/// the nearest command or key, and lists up to eight that contain the word.
Failure unknown_help_failure(const std::string& word, const std::vector<std::string>& commands,
                             const std::vector<std::string>& keys);

/// The Failure (kUsage) for an unknown long flag of a command, with the nearest known flag.
/// `command` is "" for a flag of the program itself.
Failure unknown_flag_failure(const std::string& flag, const std::string& command,
                             const std::vector<std::string>& known);

}  // namespace quasi::client
