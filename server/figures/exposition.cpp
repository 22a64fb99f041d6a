#include "server/figures/exposition.hpp"

#include <cstdint>
#include <cstdio>

namespace quasi::server {
namespace {

/// Whole numbers without a fraction, others with the digits of a double.
std::string shown(double value) {
  char text[32];
  const bool is_whole = value > -1e15 && value < 1e15 &&
                        value == static_cast<double>(static_cast<std::int64_t>(value));
  std::snprintf(text, sizeof text, is_whole ? "%.0f" : "%.15g", value);
  return text;
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
}

}  // namespace

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
  text_.append(name).append(" ").append(type).append("\n");
}

void Exposition::sample(const Labels& labels, double value) { line("", labels, value); }

void Exposition::sample(const Labels& labels, const HistogramView& histogram) {
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= histogram.bounds.size(); ++i) {
    total += histogram.counts[i];
    with_bound.back().second =
        i < histogram.bounds.size() ? shown(histogram.bounds[i]) : std::string("+Inf");
    line("_bucket", with_bound, static_cast<double>(total));
  }
  line("_sum", labels, histogram.sum);
  line("_count", labels, static_cast<double>(total));
}

void Exposition::line(std::string_view suffix, const Labels& labels, double value) {
  text_.append(name_).append(suffix);
  const char* separator = "{";
  for (const auto& [name, content] : labels) {
    text_.append(separator).append(name).append("=\"");
    append_escaped(text_, content);
    text_ += '"';
    separator = ",";
  }
  if (!labels.empty()) text_ += '}';
  text_.append(" ").append(shown(value)).append("\n");
}

}  // namespace quasi::server
