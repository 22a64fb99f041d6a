#include "client/engine/local_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/engine/engine_process.hpp"
#include "client/engine/interrupt.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

/// One line or section of a plan.
struct PlanLine {
  int rank = 0;  ///< lines of lower rank come first
  std::string name;
  std::string value;  ///< "" for a section
  const Json* section = nullptr;
};

/// Time and memory decide whether a job is worth its run, so they come first. The plan comes before
/// the checks, and a limit after the value that it limits.
int rank_of(const std::string& key, const Json& value) {
  if (key == "plan") return 0;
  if (key.find("seconds") != std::string::npos && value.is_number()) return 1;
  if (key.ends_with("bytes")) return 2;
  if (key == "limit" || key.starts_with("limit_") || key.ends_with("_limit")) return 4;
  return value.is_object() ? 5 : 3;
}

PlanLine plan_line(const std::string& key, const Json& value, bool has_details) {
  PlanLine line{.rank = rank_of(key, value), .name = key, .value = {}, .section = nullptr};
  // The unit is printed after the value instead of in the name.
  for (const char* unit : {"_bytes", "_seconds"})
    if (value.is_number() && line.name.ends_with(unit))
      line.name.resize(line.name.size() - std::string(unit).size());
  if (value.is_number() && line.name.starts_with("seconds_"))
    line.name = "time_" + line.name.substr(8);
  const NamedUnit split = split_unit(line.name);
  line.name = split.name;
  if (value.is_object() && value.value("ok", false) && !has_details)
    line.value = "ok";
  else if (value.is_object())
    line.section = &value;
  else
    line.value = readable_quantity(key, value) + (split.unit.empty() ? "" : " " + split.unit);
  return line;
}

void add_lines(const Json& value, const std::string& indent, bool has_details, std::string& text) {
  std::vector<PlanLine> lines;
  std::size_t width = 0;
  for (const auto& [key, part] : value.items()) {
    // Lists that fit into memory need no further pass, which is the usual case.
    if (!has_details && key.ends_with("_passes_per_iteration") && part == 0) continue;
    lines.push_back(plan_line(key, part, has_details));
    if (lines.back().section == nullptr) width = std::max(width, lines.back().name.size());
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const PlanLine& a, const PlanLine& b) { return a.rank < b.rank; });
  for (PlanLine& line : lines) {
    if (line.section != nullptr) {
      text += indent + printable(line.name) + "\n";
      add_lines(*line.section, indent + "  ", has_details, text);
      continue;
    }
    line.name.resize(std::max(width, line.name.size()), ' ');
    text += indent + printable(line.name + "  " + line.value) + "\n";
  }
}

}  // namespace

DeckReport check_deck(const JobRequest& request, const std::string& device) {
  const v1::DeckWork* work = wire::deck_of(request.spec);
  if (request.deck.empty() || work == nullptr)
    return {.checked = false, .why_not = "the job has no deck on this machine", .report = {}};
  const auto engine = find_engine();
  if (!engine)
    return {.checked = false, .why_not = "there is no quasi-engine beside quasi", .report = {}};
  std::vector<std::string> arguments{"validate",
                                     std::string(wire::kind_of(request.spec)),
                                     request.deck.string(),
                                     "--json",
                                     "--device",
                                     device};
  for (const v1::Setting& setting : work->settings()) {
    arguments.push_back("--set");
    arguments.push_back(setting.key() + "=" + setting.value());
  }
  for (const std::string& format : work->exports()) {
    arguments.push_back("--export");
    arguments.push_back(format);
  }
  const CapturedEnd captured = capture_engine(*engine, arguments);
  if (interrupt::requested())
    throw Failure(static_cast<ExitStatus>(interrupt::exit_status()), "interrupted");
  const ExitStatus status = status_of_engine(captured.end);
  if (status != ExitStatus::kOk) {
    const std::string crash = describe_engine_end(captured.end);
    const std::string sentence = crash.empty() ? engine_sentence(captured.err) : crash;
    // Most sentences of the engine already begin with the file.
    const std::string file = std::filesystem::path(request.source).filename().string();
    const bool named = !file.empty() && sentence.find(file) != std::string::npos;
    Failure failure(
        status,
        (named ? "" : request.source + ": ") +
            (sentence.empty() ? "quasi-engine refused the deck without a reason" : sentence),
        status == ExitStatus::kInvalidInput || status == ExitStatus::kUsage
            ? "correct the deck or the --set, then try: quasi validate " +
                  std::string(wire::kind_of(request.spec)) + " " + request.deck.string()
            : "the check runs on this machine; a job for another machine can be sent "
              "unchecked: quasi submit --no-check");
    failure.reason = "DECK_REFUSED";
    throw failure;
  }
  const Json report = Json::parse(captured.out, nullptr, false);
  if (!report.is_object())
    throw Failure(ExitStatus::kUnexpected,
                  "quasi-engine validate did not answer with a JSON document",
                  "check that '" + engine->string() +
                      "' has the same version as quasi, or skip the check with --no-check");
  return {.checked = true, .why_not = {}, .report = report};
}

std::string readable_field(std::string field, int n_jobs) {
  const auto end = field.find(']');
  if (!field.starts_with("jobs[") || end == std::string::npos) return field;
  const std::string job = field.substr(0, end + 1);
  std::string rest = field.substr(end + 1);
  if (rest.starts_with(".spec")) rest.erase(0, 5);
  if (n_jobs > 1 || rest.empty()) return job + rest;
  return rest.substr(1);
}

void check_limits(const std::vector<JobRequest>& requests) {
  wire::Violations violations;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    v1::JobSpec spec = requests[i].spec;
    for (const LocalInput& file : requests[i].files) {
      v1::Input& input = *spec.add_inputs();
      input.set_slot(file.slot);
      input.set_digest(
          std::string(64, '0'));  // the file is not hashed yet; only the form is checked
      input.set_size_bytes(file.size_bytes);
    }
    wire::validate_spec(spec, "jobs[" + std::to_string(i) + "].spec", {.enable_test_work = true},
                        violations);
  }
  if (violations.empty()) return;
  const wire::Violation& first = violations.list().front();
  const std::string source = requests.size() == 1 ? requests.front().source + ": " : "";
  Failure failure(ExitStatus::kInvalidInput,
                  source + readable_field(first.field, static_cast<int>(requests.size())) + ": " +
                      first.description,
                  "fix it in the job file or on the command line");
  failure.reason = first.reason;
  for (const wire::Violation& violation : violations.list())
    failure.violations.push_back({violation.field, violation.description});
  throw failure;
}

std::string readable_quantity(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "–";
  if (value.is_number() && value.get<double>() >= 0.0) {
    const double number = value.get<double>();
    if (key.ends_with("bytes")) return readable_bytes(static_cast<std::uint64_t>(number));
    if (key.find("seconds") != std::string::npos) return readable_seconds(number);
  }
  if (value.is_number_float()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value.get<double>());
    return text;
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 200) text = text.substr(0, 197) + "...";
  return text;
}

std::string report_text(const Console& console, const Json& report) {
  std::string text;
  Json rest = Json::object();
  for (const auto& [key, value] : report.items()) {
    if (key == "warnings" && value.is_array()) {
      for (const Json& warning : value)
        text += console.paint(Colour::kYellow, "warning:") + " " +
                printable(warning.is_string() ? warning.get<std::string>() : warning.dump()) + "\n";
    } else if (key != "ok" && key != "schema") {
      rest[key] = value;
    }
  }
  add_lines(rest, "  ", console.verbose(), text);
  return text;
}

}  // namespace quasi::client
