#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "client/failure.hpp"

namespace quasi::client {

using Json = nlohmann::ordered_json;

/// The formats of results on standard output.
enum class Format {
  kTable,  ///< a table as text
  kWide,   ///< the table with every column
  kName,   ///< only ids, one a line
  kJson,   ///< one document with "schema": "quasi.cli.v1"
  kJsonl,  ///< one object a line, written as events happen
};

enum class Colour { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue };

/// The streams that may carry colours, cursor movements and prompts.
struct Terminal {
  bool out = false;    ///< standard output is a terminal that understands them
  bool err = false;    ///< standard error is such a terminal
  bool colour = true;  ///< neither NO_COLOR, TERM=dumb nor --no-color forbids colours
  int columns = 80;
  int rows = 24;

  /// Sets columns and rows to those of the window; keeps them where there is none.
  void refresh_size();
  /// Examines descriptors 1 and 2 and the environment. An empty NO_COLOR is ignored.
  static Terminal detect(bool no_color, const std::function<const char*(const char*)>& environment);
};

/// Begin here: client/views turns results into text. `Console` writes the two streams of a command:
/// standard output for results, standard error for everything else. The other files make the text
/// of jobs, tables, bars and live lines. Not thread-safe.
class Console {
 public:
  Console(Format format, Terminal terminal, bool quiet, bool verbose)
      : format_(format), terminal_(terminal), quiet_(quiet), verbose_(verbose) {}

  Format format() const { return format_; }
  bool json() const { return format_ == Format::kJson || format_ == Format::kJsonl; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_; }
  const Terminal& terminal() const { return terminal_; }
  /// Asks the terminal for its present size, which follows its window.
  void refresh_size() { terminal_.refresh_size(); }

  /// Writes text of the result unchanged.
  void data(std::string_view text);
  /// Writes the whole result of a command in --json, with the schema's name first. In --jsonl it is
  /// one line, so every command supports both formats.
  void document(const Json& body);
  /// Writes one line of --jsonl.
  void record(const Json& body);

  /// Writes a sentence to standard error; silent with --quiet.
  void note(std::string_view text);
  void warn(std::string_view text);

  /// Writes the reason and the remedy of a failure to standard error. JSON formats also get a
  /// document with "error".
  void fail(const Failure& failure);

  /// Colours text for standard output (or standard error).
  std::string paint(Colour colour, std::string_view text) const;
  std::string paint_err(Colour colour, std::string_view text) const;

  /// Writes bytes to standard error directly, for the live view, which owns the cursor while it is
  /// shown.
  void draw(std::string_view text);

  /// Sets a function that runs before any other output, so that a live view can clear itself.
  void set_clear_hook(std::function<void()> clear) { clear_ = std::move(clear); }

  /// Flushes the output. @throws Failure (kLocalFile) if standard output is full or closed.
  void flush();

 private:
  void clear();
  Format format_;
  Terminal terminal_;
  bool quiet_;
  bool verbose_;
  std::function<void()> clear_;
};

/// The error document of the JSON formats.
Json error_document(const Failure& failure);

}  // namespace quasi::client
