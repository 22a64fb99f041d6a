#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/exit_status.hpp"

namespace quasi::client {

/// quasi-engine beside this program (or where QUASI_ENGINE says); nothing if there is none.
std::optional<std::filesystem::path> find_engine();

/// As find_engine. @throws Failure (kEngineUnavailable) that says where it was looked for.
std::filesystem::path require_engine();

/// How a child ended: its exit status, or the signal that killed it.
struct ChildEnd {
  int status = 0;
  int signal = 0;
};

/// Runs the engine with this program's own streams and waits. Signals: Ctrl-C reaches the child
/// through the terminal, SIGTERM is passed on; this program waits for its orderly end.
ChildEnd run_engine(const std::filesystem::path& engine, const std::vector<std::string>& arguments);

struct CapturedEnd {
  ChildEnd end;
  std::string out;
  std::string err;
};

/// Runs the engine and collects what it writes (at most 16 MiB of each stream).
CapturedEnd capture_engine(const std::filesystem::path& engine,
                           const std::vector<std::string>& arguments);

/// What `quasi` returns for an end of the engine: the table of docs/reference/cli.md.
ExitStatus status_of_engine(const ChildEnd& end);

/// One sentence for an end by a signal or without a word of its own; "" if the engine explains
/// itself.
std::string describe_engine_end(const ChildEnd& end);

/// The sentence with which the engine refused: the line of its standard error after "error: ", or
/// the last line.
std::string engine_sentence(const std::string& err);

}  // namespace quasi::client
