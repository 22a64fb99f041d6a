#pragma once

#include <string>
#include <vector>

#include "client/input/sweeps/sweep_axes.hpp"
#include "client/views/console.hpp"

namespace quasi::client {

struct RunCommandOptions {
  std::vector<std::string> words;  ///< KIND DECK, or DECK.toml, which states its `kind`
  std::vector<std::string> settings;
  std::string output;
  std::string device;
  std::vector<std::string> exports;
  std::string target_error_ev;  ///< that the engine aims at; "": none
  bool force = false;           ///< replace the results of an earlier run in the folder
  std::string store;            ///< folder of kept results; "": results are neither taken nor kept
  bool refresh = false;         ///< run, and keep the result instead of the earlier one
  SweepArguments sweep = {};
};

/// `quasi run` runs a job on this machine with quasi-engine, which lies beside this program. It
/// uses no server and no configuration. The engine writes to this program's own streams.
ExitStatus run(Console& console, const RunCommandOptions& options);

}  // namespace quasi::client
