#include "client/views/readable.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

namespace quasi::client {
namespace {

template <typename... Numbers>
std::string formatted(const char* pattern, Numbers... numbers) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), pattern, numbers...);
  return text.data();
}

}  // namespace

std::string readable_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  // 999.5 would print as "1000", which has a digit too many. The next unit needs only three digits.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return formatted(value < 9.95 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
}

std::string readable_seconds(double seconds) {
  if (!(seconds > 0.0)) return "0 s";
  if (seconds < 9.95) return formatted("%.1f s", seconds);
  if (seconds > 1e15) return "for ever";
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return formatted("%lld s", whole);
  if (whole < 3600) return formatted("%lld min %02lld s", whole / 60, whole % 60);
  if (whole < 86400) return formatted("%lld h %02lld min", whole / 3600, whole % 3600 / 60);
  return formatted("%lld d %lld h", whole / 86400, whole % 86400 / 3600);
}

std::string readable_age(std::int64_t time_ms, std::int64_t now_ms) {
  const std::int64_t age_s = (now_ms - time_ms) / 1000;
  if (age_s < 2) return "just now";
  if (age_s < 60) return formatted("%lld s ago", static_cast<long long>(age_s));
  if (age_s < 3600) return formatted("%lld min ago", static_cast<long long>(age_s / 60));
  if (age_s < 2 * 86400) return formatted("%lld h ago", static_cast<long long>(age_s / 3600));
  return formatted("%lld d ago", static_cast<long long>(age_s / 86400));
}

std::string rfc3339(std::int64_t time_ms) {
  const std::int64_t milliseconds = ((time_ms % 1000) + 1000) % 1000;
  const std::time_t seconds = (time_ms - milliseconds) / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return formatted("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                   utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                   static_cast<int>(milliseconds));
}

std::string local_time(std::int64_t time_ms) {
  const std::time_t seconds = time_ms / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  return formatted("%04d-%02d-%02d %02d:%02d:%02d", local.tm_year + 1900, local.tm_mon + 1,
                   local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::optional<double> parse_duration_seconds(std::string_view text) {
  double total = 0.0;
  double smallest_unit = HUGE_VAL;  // units must decrease: "1h30m", never "30m1h"
  std::size_t at = 0;
  if (text.empty()) return std::nullopt;
  while (at < text.size()) {
    const std::size_t start = at;
    int points = 0;
    while (at < text.size() && ((text[at] >= '0' && text[at] <= '9') || text[at] == '.')) {
      if (text[at] == '.') ++points;
      ++at;
    }
    const std::string number(text.substr(start, at - start));
    if (number.empty() || number == "." || points > 1 || number.size() > 15) return std::nullopt;
    double unit = 1.0;
    std::size_t length = 1;
    if (at == text.size()) {
      if (start != 0) return std::nullopt;  // "1h30" lacks the unit of 30
      length = 0;
    } else if (text.substr(at, 2) == "ms") {
      unit = 1e-3;
      length = 2;
    } else if (text[at] == 's') {
      unit = 1.0;
    } else if (text.substr(at, 3) == "min") {
      unit = 60.0;
      length = 3;
    } else if (text[at] == 'm') {
      unit = 60.0;
    } else if (text[at] == 'h') {
      unit = 3600.0;
    } else if (text[at] == 'd') {
      unit = 86400.0;
    } else {
      return std::nullopt;
    }
    if (unit >= smallest_unit) return std::nullopt;
    smallest_unit = unit;
    at += length;
    total += std::stod(number) * unit;
  }
  return total;
}

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  for (const char byte : utf8)
    if ((static_cast<unsigned char>(byte) & 0xC0u) != 0x80u) ++width;
  return width;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1_control = byte == 0xC2u && i + 1 < text.size() &&
                            static_cast<unsigned char>(text[i + 1]) >= 0x80u &&
                            static_cast<unsigned char>(text[i + 1]) < 0xA0u;
    if (byte == '\n') {
      shown += '\n';
    } else if (byte == '\t') {
      shown += ' ';
    } else if (byte < 0x20u || byte == 0x7Fu) {
      shown += '?';
    } else if (c1_control) {
      shown += '?';
      ++i;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

NamedUnit split_unit(std::string_view name) {
  // "_k" alone may count k-points; only temperatures carry it as a unit.
  static const std::vector<std::pair<std::string_view, std::string_view>> kUnits{
      {"_a_per_m", "A/m"}, {"_w_per_mk", "W/m/K"},  {"_rad_ps", "rad/ps"}, {"_ev", "eV"},
      {"_ry", "Ry"},       {"_nm", "nm"},           {"_fs", "fs"},         {"_ps", "ps"},
      {"_v", "V"},         {"temperatures_k", "K"}, {"temperature_k", "K"}};
  NamedUnit split{std::string(name), ""};
  for (const auto& [ending, unit] : kUnits) {
    if (!name.ends_with(ending)) continue;
    split.name.resize(name.rfind('_'));
    if (ending.front() == '_') split.name.resize(name.size() - ending.size());
    split.unit = unit;
    break;
  }
  std::replace(split.name.begin(), split.name.end(), '_', ' ');
  return split;
}

std::int64_t now_unix_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace quasi::client
