#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "proto/wire/text/log_line.hpp"

namespace quasi {

/// Log of the daemon. A line holds one event: a stable snake_case name and its facts.
class WorkerLog {
 public:
  using Level = wire::LogLevel;
  virtual ~WorkerLog() = default;
  /// Writes one event. `name` is stable, and `facts` is a flat JSON object.
  virtual void event(Level level, std::string_view name, const nlohmann::json& facts) = 0;

  void info(std::string_view name, const nlohmann::json& facts = {}) {
    event(Level::kInfo, name, facts);
  }
  void warning(std::string_view name, const nlohmann::json& facts = {}) {
    event(Level::kWarning, name, facts);
  }
  void error(std::string_view name, const nlohmann::json& facts = {}) {
    event(Level::kError, name, facts);
  }
};

/// Writes JSON lines to standard error, or plain text if that is a terminal.
class StderrLog : public WorkerLog {
 public:
  StderrLog(Level least, bool text) : least_(least), text_(text) {}
  void event(Level level, std::string_view name, const nlohmann::json& facts) override;

 private:
  Level least_;
  bool text_;
};

}  // namespace quasi
