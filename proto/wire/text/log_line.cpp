#include "proto/wire/text/log_line.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace quasi::wire {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the time in UTC with milliseconds, as RFC 3339 writes it.
std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ",
                static_cast<int>(milliseconds % 1000));
  return text.data();
}

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string log_line(LogLevel level, std::string_view event, const Json& facts, LogForm form) {
  static constexpr std::array<const char*, 4> kNames{"debug", "info", "warning", "error"};
  const char* name = kNames[static_cast<std::size_t>(level)];
  if (form == LogForm::kText) {
    std::string line = timestamp() + " " + name + " " + std::string(event);
    for (const auto& [key, value] : facts.items()) line += " " + key + "=" + dumped(value);
    return line + "\n";
  }
  Json document{{"time", timestamp()}, {"level", name}, {"event", std::string(event)}};
  for (const auto& [key, value] : facts.items()) document[key] = value;
  return dumped(document) + "\n";
}

void write_log_line(const std::string& line) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace quasi::wire
