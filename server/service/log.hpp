#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "proto/wire/text/log_line.hpp"

namespace quasi::server {

using Level = wire::LogLevel;

/// Writes one line to stderr for each event: text on a terminal, JSON elsewhere. `event` is a
/// stable name in snake_case. Thread-safe.
void log(Level level, std::string_view event,
         std::initializer_list<std::pair<std::string_view, std::string>> fields = {});

/// Sets the least level that is written; initially kInfo.
void set_log_level(Level level);

}  // namespace quasi::server
