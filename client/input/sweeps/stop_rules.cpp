#include "client/input/sweeps/stop_rules.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "client/failure.hpp"

namespace quasi::client {
namespace {

Failure wrong_rule(const std::string& text, const std::string& what) {
  return Failure(ExitStatus::kUsage, "--stop-when '" + text + "': " + what,
                 "write it like 'kappa_w_per_mk.xx<50', or '...<50:3' for three jobs; quasi table "
                 "prints the names of figures");
}

std::string without_blanks(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

template <class Number>
std::optional<Number> number_of_text(const std::string& text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

v1::StopRule stop_rule_of(const std::string& text) {
  const auto sign = text.find_first_of("<>");
  if (sign == std::string::npos) throw wrong_rule(text, "it has none of <, <=, > and >=");
  const bool with_equal = sign + 1 < text.size() && text[sign + 1] == '=';
  const bool is_below = text[sign] == '<';
  v1::StopRule rule;
  rule.set_figure(without_blanks(text.substr(0, sign)));
  if (rule.figure().empty()) throw wrong_rule(text, "it names no figure");
  rule.set_comparison(
      is_below ? (with_equal ? v1::StopRule::COMPARISON_AT_MOST : v1::StopRule::COMPARISON_BELOW)
               : (with_equal ? v1::StopRule::COMPARISON_AT_LEAST : v1::StopRule::COMPARISON_ABOVE));
  std::string value = text.substr(sign + (with_equal ? 2 : 1));
  if (const auto colon = value.find(':'); colon != std::string::npos) {
    const auto jobs = number_of_text<std::uint32_t>(without_blanks(value.substr(colon + 1)));
    if (!jobs || *jobs == 0) throw wrong_rule(text, "the number of jobs must be 1 or more");
    rule.set_jobs(*jobs);
    value.resize(colon);
  }
  const auto number = number_of_text<double>(without_blanks(value));
  if (!number || !std::isfinite(*number))
    throw wrong_rule(text, "'" + without_blanks(value) + "' is not a number");
  rule.set_value(*number);
  return rule;
}

wire::StopCondition condition_of(const v1::StopRule& rule) {
  return {.figure = rule.figure(),
          .comparison = static_cast<wire::Comparison>(rule.comparison()),
          .value = rule.value(),
          .jobs = rule.jobs() > 0 ? static_cast<std::int64_t>(rule.jobs()) : 1};
}

}  // namespace quasi::client
