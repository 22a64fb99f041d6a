#include "server/web/pages/html.hpp"

#include <array>
#include <cstdio>
#include <ctime>
#include <iterator>

namespace quasi::server {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

/// A character of UTF-8 at the begin of a text.
struct Character {
  std::size_t size = 1;
  std::uint32_t code = 0;
  bool is_valid = false;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {.size = 1, .code = lead, .is_valid = true};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {};
  std::uint32_t code = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeast[size] || code > 0x10FFFF || is_surrogate) return {};
  return {.size = size, .code = code, .is_valid = true};
}

bool is_shown(std::uint32_t code) {
  if (code == '\n' || code == '\t') return true;
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  // Marks that change the direction of the text behind them, and line ends of Unicode.
  return code != 0x061C && code != 0x200E && code != 0x200F &&
         !(code >= 0x2028 && code <= 0x202E) && !(code >= 0x2066 && code <= 0x2069);
}

std::string formatted(const char* format, double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value, unit);
  return text.data();
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character next = first_of(text);
    if (next.is_valid && is_shown(next.code))
      out.append(text.substr(0, next.size));
    else
      out += kReplacement;
    text.remove_prefix(next.size);
  }
  return out;
}

Html& Html::text(std::string_view text) {
  for (const char c : visible(text)) switch (c) {
      case '&':
        out_ += "&amp;";
        break;
      case '<':
        out_ += "&lt;";
        break;
      case '>':
        out_ += "&gt;";
        break;
      case '"':
        out_ += "&quot;";
        break;
      case '\'':
        out_ += "&#39;";
        break;
      default:
        out_ += c;
    }
  return *this;
}

std::string shown_duration(std::int64_t ms) {
  const std::int64_t seconds = ms / 1'000;
  if (seconds < 10) return formatted("%.1f%s", static_cast<double>(ms) / 1e3, " s");
  const auto two = [](std::int64_t large, const char* name, std::int64_t small, const char* rest) {
    return std::to_string(large) + name + std::to_string(small) + rest;
  };
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3'600) return two(seconds / 60, " min ", seconds % 60, " s");
  if (seconds < 86'400) return two(seconds / 3'600, " h ", seconds % 3'600 / 60, " min");
  return two(seconds / 86'400, " d ", seconds % 86'400 / 3'600, " h");
}

std::string shown_bytes_of(std::int64_t bytes) {
  const char* const units[] = {" B", " kB", " MB", " GB", " TB", " PB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1'000 && unit + 1 < std::size(units); ++unit) value /= 1'000;
  return formatted(unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
}

std::string shown_time(std::int64_t wall_ms) {
  if (wall_ms <= 0) return "–";
  const auto seconds = static_cast<std::time_t>(wall_ms / 1'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string shown_share(double share) { return formatted("%.0f%s", 100.0 * share, " %"); }

std::string shown_number_of(double value) { return formatted("%.6g%s", value, ""); }

}  // namespace quasi::server
