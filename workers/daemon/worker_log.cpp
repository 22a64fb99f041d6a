#include "workers/daemon/worker_log.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace quasi {
namespace {

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ",
                static_cast<int>(milliseconds % 1000));
  return text.data();
}

}  // namespace

void StderrLog::event(Level level, std::string_view name, const nlohmann::json& facts) {
  static constexpr std::array<const char*, 4> kNames{"debug", "info", "warning", "error"};
  if (level < least_) return;
  const char* level_name = kNames[static_cast<std::size_t>(level)];
  std::string line;
  if (text_) {
    line = timestamp() + " " + level_name + " " + std::string(name);
    for (const auto& [key, value] : facts.items())
      line += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  } else {
    nlohmann::json document = facts.is_object() ? facts : nlohmann::json::object();
    document["time"] = timestamp();
    document["level"] = level_name;
    document["event"] = std::string(name);
    line = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace quasi
