#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "client/failure.hpp"

namespace quasi::client {

using Json = nlohmann::ordered_json;

/// How results are written to standard output.
enum class Format {
  kTable,  ///< for people
  kWide,   ///< the table with every column
  kName,   ///< ids alone, one a line
  kJson,   ///< one document with "schema": "quasi.cli.v1"
  kJsonl,  ///< one object a line, written as things happen
};

enum class Colour { kPlain, kBold, kDim, kRed, kGreen, kYellow, kBlue };

/// Whether a stream may carry colours, cursor movements and prompts.
struct Terminal {
  bool out = false;    ///< standard output is a terminal that understands them
  bool err = false;    ///< standard error is
  bool colour = true;  ///< neither NO_COLOR, TERM=dumb nor --no-color forbids colours
  int columns = 80;
  int rows = 24;

  /// Looks at descriptors 1 and 2 and at the environment. NO_COLOR counts when it is not empty.
  static Terminal detect(bool no_color, const std::function<const char*(const char*)>& environment);
};

/// The two streams of a command: results to standard output, everything else to standard error.
/// Not thread-safe.
class Console {
 public:
  Console(Format format, Terminal terminal, bool quiet, bool verbose)
      : format_(format), terminal_(terminal), quiet_(quiet), verbose_(verbose) {}

  Format format() const { return format_; }
  bool json() const { return format_ == Format::kJson || format_ == Format::kJsonl; }
  bool quiet() const { return quiet_; }
  bool verbose() const { return verbose_; }
  const Terminal& terminal() const { return terminal_; }

  /// Text of the result, as it is.
  void data(std::string_view text);
  /// The whole result of a command in --json, with the schema's name in front. In --jsonl it is one
  /// line, so that every command answers in both.
  void document(const Json& body);
  /// One line of --jsonl.
  void record(const Json& body);

  /// A sentence for the person at the terminal; silent with --quiet.
  void note(std::string_view text);
  void warn(std::string_view text);

  /// "error: what" and what to do, on standard error; in JSON formats also a document with "error".
  void fail(const Failure& failure);

  /// Colours for text bound for standard output (or standard error).
  std::string paint(Colour colour, std::string_view text) const;
  std::string paint_err(Colour colour, std::string_view text) const;

  /// Bytes straight to standard error: for the live view, which owns the cursor while it is shown.
  void draw(std::string_view text);

  /// Called before anything else is written, so that a live view can clear itself.
  void before_writing(std::function<void()> clear) { clear_ = std::move(clear); }

  /// Writes out what is buffered. @throws Failure (kLocalFile) if standard output is full or
  /// closed.
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
