#include "client/views/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

constexpr const char* kSchema = "quasi.cli.v1";

void write_all(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

/// Invalid UTF-8 (a file name, a log) is shown with replacement characters instead of an exception.
std::string dumped(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string painted(Colour colour, std::string_view text, bool allowed) {
  if (!allowed || colour == Colour::kPlain) return std::string(text);
  const char* code = "";
  switch (colour) {
    case Colour::kPlain:
      break;
    case Colour::kBold:
      code = "\033[1m";
      break;
    case Colour::kDim:
      code = "\033[2m";
      break;
    case Colour::kRed:
      code = "\033[31m";
      break;
    case Colour::kGreen:
      code = "\033[32m";
      break;
    case Colour::kYellow:
      code = "\033[33m";
      break;
    case Colour::kBlue:
      code = "\033[34m";
      break;
  }
  return code + std::string(text) + "\033[0m";
}

}  // namespace

Terminal Terminal::detect(bool no_color,
                          const std::function<const char*(const char*)>& environment) {
  Terminal terminal;
  const char* term = environment("TERM");
  const char* no_color_wish = environment("NO_COLOR");
  const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  terminal.out = isatty(STDOUT_FILENO) != 0 && !dumb;
  terminal.err = isatty(STDERR_FILENO) != 0 && !dumb;
  terminal.colour = !no_color && !dumb && (no_color_wish == nullptr || *no_color_wish == '\0');
  terminal.refresh_size();
  return terminal;
}

void Terminal::refresh_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
  columns = size.ws_col;
  rows = size.ws_row;
}

void Console::clear() {
  if (clear_) clear_();
}

void Console::data(std::string_view text) {
  clear();
  write_all(stdout, text);
}

void Console::document(const Json& body) {
  Json whole{{"schema", kSchema}};
  whole.update(body);
  data(dumped(whole, format_ == Format::kJsonl ? -1 : 2) + "\n");
}

void Console::record(const Json& body) {
  data(dumped(body, -1) + "\n");
  // A reader of --jsonl acts on each line as it arrives.
  std::fflush(stdout);
}

void Console::note(std::string_view text) {
  if (quiet_) return;
  clear();
  write_all(stderr, printable(text) + "\n");
}

void Console::warn(std::string_view text) {
  clear();
  write_all(stderr, paint_err(Colour::kYellow, "warning:") + " " + printable(text) + "\n");
}

void Console::fail(const Failure& failure) {
  clear();
  std::string text = paint_err(Colour::kRed, "error:") + " " + printable(failure.what());
  const std::size_t more = failure.violations.size() > 1 ? failure.violations.size() - 1 : 0;
  if (more > 0 && !verbose_) text += "  (and " + std::to_string(more) + " more, see --verbose)";
  text += "\n";
  if (verbose_) {
    for (std::size_t i = 1; i < failure.violations.size(); ++i)
      text += "       " +
              printable(failure.violations[i].field + ": " + failure.violations[i].message) + "\n";
    for (const std::string& detail : failure.details) text += "       " + printable(detail) + "\n";
  }
  if (!failure.remedy.empty()) text += printable(failure.remedy) + "\n";
  std::fflush(stdout);
  write_all(stderr, text);
  if (json()) document(error_document(failure));
}

std::string Console::paint(Colour colour, std::string_view text) const {
  return painted(colour, text, terminal_.out && terminal_.colour);
}

std::string Console::paint_err(Colour colour, std::string_view text) const {
  return painted(colour, text, terminal_.err && terminal_.colour);
}

void Console::draw(std::string_view text) {
  write_all(stderr, text);
  std::fflush(stderr);
}

void Console::flush() {
  clear();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Failure(ExitStatus::kLocalFile,
                  std::string("cannot write to standard output: ") + std::strerror(errno),
                  "free space on the disk, or check that the reader of the pipe still runs");
}

Json error_document(const Failure& failure) {
  Json error{{"exit_status", static_cast<int>(failure.status)}};
  // Only answers of a server have a reason.
  if (!failure.reason.empty()) error["reason"] = failure.reason;
  error["message"] = failure.what();
  error["remedy"] = failure.remedy;
  Json violations = Json::array();
  for (const Violation& violation : failure.violations)
    violations.push_back({{"field", violation.field}, {"message", violation.message}});
  error["violations"] = violations;
  return Json{{"error", error}};
}

}  // namespace quasi::client
