#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct RunCommandOptions {
  std::vector<std::string> words;  ///< KIND DECK, or DECK.toml (its `kind` says which)
  std::vector<std::string> settings;
  std::string output;
  std::string device;
  std::vector<std::string> exports;
};

/// `quasi run`: a job here and now, by quasi-engine beside this program. No server, no
/// configuration; the engine's streams are this program's own.
ExitStatus run(Console& console, const RunCommandOptions& options);

}  // namespace quasi::client
