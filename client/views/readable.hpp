#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quasi::client {

/// Sizes, durations and times in the forms that users read and write.

/// A size such as "817 B", "4.2 MiB", "1.9 GiB": three digits at most.
std::string readable_bytes(std::uint64_t bytes);

/// A duration such as "0.8 s", "42 s", "4 min 12 s", "3 h 05 min", "2 d 4 h". Negative values come
/// from clock skew and give "0 s".
std::string readable_seconds(double seconds);

/// An age such as "just now", "42 s ago", "3 min ago", "2 h ago", "5 d ago".
std::string readable_age(std::int64_t time_ms, std::int64_t now_ms);

/// UTC time, e.g. "2026-03-01T12:30:05.250Z".
std::string rfc3339(std::int64_t time_ms);

/// Local wall-clock time, e.g. "2026-03-01 13:30:05".
std::string local_time(std::int64_t time_ms);

/// The seconds of "90", "90s", "15m", "1.5h", "2d", "1h30m"; nothing for any other text.
std::optional<double> parse_duration_seconds(std::string_view text);

/// The number of terminal columns of UTF-8 text, counting one per code point.
std::size_t display_width(std::string_view utf8);

/// Replaces control characters by '?', so that text from a server or a file cannot move the cursor
/// or change colours. Tabs become spaces; newlines stay.
std::string printable(std::string_view text);

/// A name and its unit, e.g. "highest omega" and "rad/ps" for "highest_omega_rad_ps".
struct NamedUnit {
  std::string name;  ///< with blanks instead of underscores
  std::string unit;  ///< "" if the name ends in no known unit
};
NamedUnit split_unit(std::string_view name);

std::int64_t now_unix_ms();

}  // namespace quasi::client
