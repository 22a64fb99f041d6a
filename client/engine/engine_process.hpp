#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/exit_status.hpp"

namespace quasi::client {

/// Begin here: client/engine runs quasi-engine for a command. This function finds quasi-engine
/// beside this program, or at the path in QUASI_ENGINE. It returns nullopt if the engine is
/// missing.
std::optional<std::filesystem::path> find_engine();

/// Returns the path of find_engine. @throws Failure (kEngineUnavailable) that names the searched
/// path.
std::filesystem::path require_engine();

/// The end of a child process: its exit status, or the signal that killed it.
struct ChildEnd {
  int status = 0;
  int signal = 0;
};

/// Runs the engine with this program's own streams and waits for its end. Ctrl-C reaches the child
/// through the terminal; SIGTERM is forwarded. The child may finish properly in both cases.
ChildEnd run_engine(const std::filesystem::path& engine, const std::vector<std::string>& arguments);

struct CapturedEnd {
  ChildEnd end;
  std::string out;
  std::string err;
};

/// Runs the engine and collects its output, at most 16 MiB of each stream.
CapturedEnd capture_engine(const std::filesystem::path& engine,
                           const std::vector<std::string>& arguments);

/// The exit status of `quasi` for an end of the engine, by the table of docs/reference/cli.md.
ExitStatus status_of_engine(const ChildEnd& end);

/// One sentence for an end by a signal or without a message; "" if the engine explained its end.
std::string describe_engine_end(const ChildEnd& end);

/// The sentence with which the engine refused: the line of its standard error after "error: ", or
/// the last line.
std::string engine_sentence(const std::string& err);

}  // namespace quasi::client
