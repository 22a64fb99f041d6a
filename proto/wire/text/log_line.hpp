#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// The lines of the logs of server and worker.
namespace quasi::wire {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

enum class LogForm : std::uint8_t {
  kJson,  ///< one JSON object a line: time, level, event, then the facts
  kText,  ///< the same words for a terminal. Facts are `key=value`, with texts in quotes.
};

/// Returns one line with its end. `event` is a stable name in snake_case, and `facts` an object
/// without deeper levels. Bytes that are not UTF-8 are replaced, and control characters are
/// escaped, so that no text from outside makes a line or reaches a terminal.
std::string log_line(LogLevel level, std::string_view event, const nlohmann::ordered_json& facts,
                     LogForm form);

/// Writes the line to standard error with one call, which keeps the lines of several threads apart.
void write_log_line(const std::string& line);

}  // namespace quasi::wire
