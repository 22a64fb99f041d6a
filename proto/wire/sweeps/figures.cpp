#include "proto/wire/sweeps/figures.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace quasi::wire {
namespace {

using Json = nlohmann::ordered_json;

/// A summary comes from a worker, and deeper nesting could exhaust the stack.
constexpr int kMostDepth = 32;

bool is_tensor(const Json& value) {
  return value.is_array() && value.size() == 3 &&
         std::all_of(value.begin(), value.end(), [](const Json& row) {
           return row.is_array() && row.size() == 3 &&
                  std::all_of(row.begin(), row.end(), [](const Json& x) { return x.is_number(); });
         });
}

bool is_aside(const std::string& key) {
  return key == "checks" || key == "warnings" || key == "seconds" || key == "deck_sha256";
}

void collect(const std::string& name, const Json& value, int depth, Figures& figures) {
  if (depth > kMostDepth) return;
  if (is_tensor(value)) {
    constexpr const char* kAxes[] = {".xx", ".yy", ".zz"};
    for (std::size_t i = 0; i < 3; ++i) figures.emplace_back(name + kAxes[i], value[i][i].dump());
  } else if (value.is_array()) {
    if (value.size() == 1) collect(name, value.front(), depth + 1, figures);
  } else if (value.is_object()) {
    for (const auto& [key, part] : value.items())
      if (!is_aside(key)) collect(name.empty() ? key : name + "." + key, part, depth + 1, figures);
  } else if (value.is_string()) {
    figures.emplace_back(name, value.get<std::string>());
  } else if (!value.is_null()) {
    figures.emplace_back(name, value.dump());
  }
}

}  // namespace

Figures figures_of(const Json& document) {
  Figures figures;
  const auto summary = document.find("summary");
  const bool is_whole = summary != document.end() && summary->is_object();
  if (document.is_object()) collect("", is_whole ? *summary : document, 0, figures);
  return figures;
}

Figures figures_in(std::string_view json) {
  return figures_of(Json::parse(json.begin(), json.end(), nullptr, false));
}

std::optional<double> number_of(const Figures& figures, std::string_view name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const auto& figure) { return figure.first == name; });
  if (found == figures.end()) return std::nullopt;
  const std::string& text = found->second;
  double number = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

bool holds(double figure, Comparison comparison, double value) {
  switch (comparison) {
    case Comparison::kBelow:
      return figure < value;
    case Comparison::kAtMost:
      return figure <= value;
    case Comparison::kAbove:
      return figure > value;
    case Comparison::kAtLeast:
      return figure >= value;
  }
  return false;
}

std::string_view sign_of(Comparison comparison) {
  switch (comparison) {
    case Comparison::kBelow:
      return "<";
    case Comparison::kAtMost:
      return "<=";
    case Comparison::kAbove:
      return ">";
    case Comparison::kAtLeast:
      return ">=";
  }
  return "?";
}

std::string shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

std::string text_of(const StopCondition& condition) {
  std::string text = condition.figure + " " + std::string(sign_of(condition.comparison)) + " " +
                     shortest(condition.value);
  if (condition.jobs > 1) text += " in " + std::to_string(condition.jobs) + " jobs";
  return text;
}

}  // namespace quasi::wire
