#include "client/input/sweeps/sweep_axes.hpp"

#include "client/input/sweeps/stop_rules.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "client/failure.hpp"
#include "client/session/durable_file.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/sweeps/sweep.hpp"

namespace quasi::client {
namespace {

constexpr char kForms[] =
    "write it like KEY=1,2,3, KEY=8,8,8;12,12,12, KEY=start:stop:count or "
    "KEY=log:start:stop:count";
constexpr std::size_t kTableBytes = std::size_t{4} << 20;

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::optional<double> finite_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || errno != 0 || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string decimal_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

void add_point(v1::SweepAxis& axis, const std::string& value) {
  axis.add_points()->add_values(value);
}

Failure wrong(const std::string& text, const std::string& why) {
  return Failure(ExitStatus::kUsage, "--sweep: '" + text + "': " + why, kForms);
}

/// Adds the values of a range. `parts` are its start, stop and count.
void add_range(const std::string& text, const std::vector<std::string>& parts, bool is_log,
               v1::SweepAxis& axis) {
  const auto start = finite_number(parts[0]), stop = finite_number(parts[1]),
             count = finite_number(parts[2]);
  if (!start || !stop) throw wrong(text, "start and stop must be numbers");
  if (!count || *count != std::floor(*count) || *count < 2 || *count > limits::kSweepJobs)
    throw wrong(text, "count must be a whole number of 2..." + std::to_string(limits::kSweepJobs) +
                          ", got " + parts[2]);
  if (is_log && *start * *stop <= 0.0)
    throw wrong(text, "a logarithmic range has two ends of one sign, none of them 0");
  const auto n = static_cast<int>(*count);
  for (int i = 0; i < n; ++i) {
    const double at = static_cast<double>(i) / (n - 1);
    double value = is_log ? *start * std::pow(*stop / *start, at) : *start + (*stop - *start) * at;
    if (i == n - 1) value = *stop;
    add_point(axis, decimal_text(value));
  }
}

/// The records of a CSV text. A cell in quotes may hold commas, line ends and doubled quotes.
std::vector<std::vector<std::string>> records_of(const std::string& text, const std::string& name) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> cells(1);
  bool quoted = false, any = false;
  const auto end_record = [&] {
    if (any) records.push_back(cells);
    cells.assign(1, "");
    any = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      cells.back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (!quoted && c == ',') {
      cells.emplace_back();
      any = true;
    } else if (!quoted && c == '\n') {
      end_record();
    } else if (quoted || c != '\r') {
      cells.back() += c;
      any = any || c != ' ';
    }
  }
  if (quoted)
    throw Failure(ExitStatus::kInvalidInput, name + ": a quoted cell does not end",
                  "close it with a \"");
  end_record();
  return records;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

v1::SweepAxis axis_of(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw wrong(text, "it has no '=' after a key");
  v1::SweepAxis axis;
  axis.add_keys(text.substr(0, equals));
  const std::string values = text.substr(equals + 1);
  std::vector<std::string> parts = parts_of(values, ':');
  const bool is_log = parts.front() == "log";
  if (is_log) parts.erase(parts.begin());
  if (is_log && parts.size() != 3) throw wrong(text, "a logarithmic range has three numbers");
  if (is_log || (parts.size() == 3 && finite_number(parts[0]) && finite_number(parts[1]))) {
    add_range(text, parts, is_log, axis);
    return axis;
  }
  const char separator = values.find(';') == std::string::npos ? ',' : ';';
  for (const std::string& value : parts_of(values, separator)) {
    if (trimmed(value).empty()) throw wrong(text, "a value is empty");
    add_point(axis, trimmed(value));
  }
  return axis;
}

v1::SweepAxis axis_of_table(const std::string& text, const std::string& name) {
  const auto records = records_of(text, name);
  if (records.size() < 2)
    throw Failure(ExitStatus::kInvalidInput, name + ": has no line with values",
                  "its first line holds keys of the deck, each other line a value for each key");
  v1::SweepAxis axis;
  for (const std::string& key : records.front()) axis.add_keys(trimmed(key));
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].size() != records.front().size())
      throw Failure(ExitStatus::kInvalidInput,
                    name + ": record " + std::to_string(i + 1) + " has " +
                        std::to_string(records[i].size()) + " cells, and the first line has " +
                        std::to_string(records.front().size()) + " keys",
                    "give a value for each key; put a value with commas into quotes");
    v1::SweepPoint& point = *axis.add_points();
    for (const std::string& cell : records[i]) point.add_values(trimmed(cell));
  }
  return axis;
}

v1::Sweep sweep_of(const SweepArguments& arguments, const v1::JobSpec& job) {
  v1::Sweep sweep;
  *sweep.mutable_job() = job;
  for (const std::string& text : arguments.axes) *sweep.add_axes() = axis_of(text);
  if (!arguments.table.empty())
    *sweep.add_axes() = axis_of_table(read_whole(arguments.table, kTableBytes), arguments.table);
  sweep.set_max_concurrent(arguments.max_concurrent.value_or(0));
  sweep.set_stop_after_failures(arguments.stop_after_failures.value_or(0));
  for (const std::string& text : arguments.stop_when) *sweep.add_stop_rules() = stop_rule_of(text);
  return sweep;
}

void check_sweep_limits(const v1::Sweep& sweep, const JobRequest& request) {
  v1::Sweep checked = sweep;
  for (const LocalInput& file : request.files) {
    v1::Input& input = *checked.mutable_job()->add_inputs();
    input.set_slot(file.slot);
    input.set_digest(std::string(64, '0'));  // only the form is checked
    input.set_size_bytes(file.size_bytes);
  }
  wire::Violations violations;
  wire::validate_sweep(checked, "sweep", {.enable_test_work = true}, violations);
  if (violations.empty()) return;
  const wire::Violation& first = violations.list().front();
  Failure failure(ExitStatus::kInvalidInput, first.field + ": " + first.description,
                  "correct the --sweep or the job");
  failure.reason = first.reason;
  for (const wire::Violation& violation : violations.list())
    failure.violations.push_back({violation.field, violation.description});
  throw failure;
}

std::vector<std::size_t> samples_of(const v1::Sweep& sweep) {
  constexpr std::size_t kOfAnAxis = 8;
  std::vector<std::size_t> samples = {0};
  std::size_t stride = wire::jobs_in_sweep(sweep);
  for (const v1::SweepAxis& axis : sweep.axes()) {
    const auto n = static_cast<std::size_t>(axis.points_size());
    stride /= n;
    const std::size_t checked = std::min(n, kOfAnAxis);
    for (std::size_t i = 1; i < checked; ++i)
      samples.push_back(stride * (i * (n - 1) / (checked - 1)));
  }
  return samples;
}

std::string point_text(const v1::Sweep& sweep, std::size_t index) {
  const std::vector<std::size_t> points = wire::points_of_job(sweep, index);
  std::string text;
  for (std::size_t a = 0; a < points.size(); ++a) {
    const v1::SweepAxis& axis = sweep.axes(static_cast<int>(a));
    for (int k = 0; k < axis.keys_size(); ++k)
      text += (text.empty() ? "" : " ") + axis.keys(k) + "=" +
              axis.points(static_cast<int>(points[a])).values(k);
  }
  return text;
}

}  // namespace quasi::client
