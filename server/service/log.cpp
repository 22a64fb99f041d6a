#include "server/service/log.hpp"

#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>

namespace quasi::server {
namespace {

std::atomic<Level> threshold{Level::kInfo};

}  // namespace

void set_log_level(Level level) { threshold = level; }

void log(Level level, std::string_view event,
         std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  if (level < threshold) return;
  static const auto form = isatty(STDERR_FILENO) != 0 ? wire::LogForm::kText : wire::LogForm::kJson;
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [key, value] : fields) facts[std::string(key)] = value;
  wire::write_log_line(wire::log_line(level, event, facts, form));
}

}  // namespace quasi::server
