#pragma once

#include <string>
#include <vector>

#include "client/failure.hpp"

namespace quasi::client {

/// Failure (kUsage) for a word that stands where a command must, with the nearest known command.
Failure unknown_command_failure(const std::string& name, const std::vector<std::string>& known);

/// Failure (kUsage) for a long flag that the command does not have, with the nearest known flag.
/// `command` is "" for a flag of the program itself.
Failure unknown_flag_failure(const std::string& flag, const std::string& command,
                             const std::vector<std::string>& known);

}  // namespace quasi::client
