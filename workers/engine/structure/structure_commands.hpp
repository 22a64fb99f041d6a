#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "workers/thermal/displacement_commands.hpp"

namespace quasi {

/// The commands `displace` and `collect`, which make a deck of `thermal` from a crystal structure.
class StructureCommands {
 public:
  /// Adds the commands and their options to a command line, which this object must outlive.
  explicit StructureCommands(CLI::App& app);

  /// Runs the command that was chosen, if it is one of these, and prints its report.
  void run() const;

 private:
  CLI::App* displace_ = nullptr;
  CLI::App* collect_ = nullptr;
  std::string poscar_;
  std::string plan_;
  std::vector<std::string> forces_;
  std::string displace_output_ = "displacements";
  std::string collect_output_ = "deck";
  thermal::DisplacementOptions displacement_;
};

}  // namespace quasi
