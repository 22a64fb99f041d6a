#include "server/service/log.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace quasi::server {
namespace {

std::atomic<Level> threshold{Level::kInfo};

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "unknown";
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + size, sizeof text - size, ".%03dZ", static_cast<int>(milliseconds));
  return text;
}

}  // namespace

void set_log_level(Level level) { threshold = level; }

void log(Level level, std::string_view event,
         std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  if (level < threshold) return;
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  std::string line;
  if (terminal) {
    line = timestamp() + " " + std::string(name_of(level)) + " " + std::string(event);
    for (const auto& [key, value] : fields) {
      line += ' ';
      line += key;
      line += '=';
      append_json(line, value);
    }
  } else {
    line = "{\"time\":\"" + timestamp() + "\",\"level\":\"" + std::string(name_of(level)) +
           "\",\"event\":";
    append_json(line, event);
    for (const auto& [key, value] : fields) {
      line += ',';
      append_json(line, key);
      line += ':';
      append_json(line, value);
    }
    line += '}';
  }
  line += '\n';
  // One write call keeps the lines of several threads apart.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace quasi::server
