#include "proto/wire/sweeps/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "proto/wire/checks.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::wire {
namespace {

using checks::at;
using checks::shown;

std::string suffix_of(const std::vector<std::size_t>& points) {
  std::string text;
  for (const std::size_t point : points) {
    text += text.empty() ? "[" : ",";
    text += std::to_string(point);
  }
  return text + "]";
}

void check_axis(const v1::SweepAxis& axis, const std::string& field, std::set<std::string>& keys,
                Violations& violations) {
  if (axis.keys().empty() || axis.points().empty())
    violations.add(field, "must have at least one key and one point");
  checks::count(static_cast<std::uint64_t>(axis.keys_size()), limits::kAxisKeys, "entries",
                at(field, "keys"), violations);
  checks::count(static_cast<std::uint64_t>(axis.points_size()), limits::kSweepJobs, "entries",
                at(field, "points"), violations);
  for (int i = 0; i < axis.keys_size(); ++i) {
    const std::string key = at(field, "keys", i);
    if (axis.keys(i).empty()) violations.add(key, "must not be empty");
    checks::text(axis.keys(i), limits::kSettingKeyBytes, key, violations);
    if (!keys.insert(axis.keys(i)).second)
      violations.add(key, shown(axis.keys(i)) + " varies twice; give each key once");
  }
  for (int i = 0; i < axis.points_size(); ++i) {
    const v1::SweepPoint& point = axis.points(i);
    const std::string values = at(at(field, "points", i), "values");
    if (point.values_size() != axis.keys_size())
      violations.add(values, "must have one entry for each of the " +
                                 std::to_string(axis.keys_size()) + " keys, got " +
                                 std::to_string(point.values_size()));
    for (int k = 0; k < point.values_size(); ++k)
      checks::text(point.values(k), limits::kSettingValueBytes,
                   at(at(field, "points", i), "values", k), violations, checks::Lines::kMany);
  }
}

/// Checks what a template may not have although a job may.
void check_template(const v1::JobSpec& spec, const std::string& path, Violations& violations) {
  if (deck_of(spec) == nullptr)
    violations.add(path, "must be a job with a deck, whose keys the axes vary");
  for (int i = 0; i < spec.depends_on_size(); ++i)
    if (spec.depends_on(i).has_index())
      violations.add(at(at(path, "depends_on", i), "index"),
                     "must not be set in a sweep; name the job by its id");
  for (int i = 0; i < spec.inputs_size(); ++i)
    if (spec.inputs(i).from().has_index())
      violations.add(at(at(path, "inputs", i), "from.index"),
                     "must not be set in a sweep; name the job by its id");
}

void check_stop_rules(const v1::Sweep& sweep, const std::string& path, std::size_t n_jobs,
                      Violations& violations) {
  checks::count(static_cast<std::uint64_t>(sweep.stop_rules_size()), limits::kStopRules, "entries",
                at(path, "stop_rules"), violations);
  for (int i = 0; i < sweep.stop_rules_size(); ++i) {
    const v1::StopRule& rule = sweep.stop_rules(i);
    const std::string field = at(path, "stop_rules", i);
    if (rule.figure().empty())
      violations.add(at(field, "figure"), "must name a figure of quasi table, got \"\"");
    checks::text(rule.figure(), limits::kFigureBytes, at(field, "figure"), violations);
    if (!v1::StopRule::Comparison_IsValid(rule.comparison()) ||
        rule.comparison() == v1::StopRule::COMPARISON_UNSPECIFIED)
      violations.add(at(field, "comparison"),
                     "must be BELOW, AT_MOST, ABOVE or AT_LEAST, got number " +
                         std::to_string(static_cast<int>(rule.comparison())));
    if (!std::isfinite(rule.value())) violations.add(at(field, "value"), "must be a finite number");
    if (rule.jobs() > n_jobs)
      violations.add(at(field, "jobs"), "must be at most the " + std::to_string(n_jobs) +
                                            " jobs of the sweep, got " +
                                            std::to_string(rule.jobs()));
  }
}

}  // namespace

std::size_t jobs_in_sweep(const v1::Sweep& sweep) {
  std::size_t jobs = 1;
  for (const v1::SweepAxis& axis : sweep.axes())
    jobs = std::min<std::size_t>(jobs * static_cast<std::size_t>(axis.points_size()),
                                 limits::kSweepJobs + 1);
  return sweep.axes().empty() ? 0 : jobs;
}

std::vector<std::size_t> points_of_job(const v1::Sweep& sweep, std::size_t index) {
  std::vector<std::size_t> points(static_cast<std::size_t>(sweep.axes_size()));
  for (std::size_t axis = points.size(); axis-- > 0;) {
    const auto n = static_cast<std::size_t>(sweep.axes(static_cast<int>(axis)).points_size());
    points[axis] = index % n;
    index /= n;
  }
  return points;
}

v1::JobSpec job_of_sweep(const v1::Sweep& sweep, std::size_t index) {
  v1::JobSpec spec = sweep.job();
  const std::vector<std::size_t> points = points_of_job(sweep, index);
  spec.set_name(spec.name() + suffix_of(points));
  v1::DeckWork* deck = mutable_deck_of(spec);
  if (deck == nullptr) return spec;
  for (std::size_t a = 0; a < points.size(); ++a) {
    const v1::SweepAxis& axis = sweep.axes(static_cast<int>(a));
    for (int k = 0; k < axis.keys_size(); ++k) {
      v1::Setting& setting = *deck->add_settings();
      setting.set_key(axis.keys(k));
      setting.set_value(axis.points(static_cast<int>(points[a])).values(k));
    }
  }
  return spec;
}

void validate_sweep(const v1::Sweep& sweep, const std::string& path,
                    const ValidationOptions& options, Violations& violations) {
  const std::string spec = at(path, "job");
  validate_spec(sweep.job(), spec, options, violations);
  check_template(sweep.job(), spec, violations);
  checks::count(static_cast<std::uint64_t>(sweep.axes_size()), limits::kSweepAxes, "entries",
                at(path, "axes"), violations);
  if (sweep.axes().empty()) violations.add(at(path, "axes"), "must have at least one entry");
  std::set<std::string> keys;
  for (int i = 0; i < sweep.axes_size(); ++i)
    check_axis(sweep.axes(i), at(path, "axes", i), keys, violations);
  const std::size_t jobs = jobs_in_sweep(sweep);
  if (jobs > limits::kSweepJobs)
    violations.add(at(path, "axes"), "must have at most " + std::to_string(limits::kSweepJobs) +
                                         " combinations; cut the sweep into several");
  check_stop_rules(sweep, path, jobs, violations);
  if (!violations.empty()) return;
  // The last job has the longest name, and each job has as many settings.
  const v1::JobSpec last = job_of_sweep(sweep, jobs - 1);
  if (last.name().size() > limits::kNameBytes)
    violations.add(at(spec, "name"), "must have at most " + std::to_string(limits::kNameBytes) +
                                         " bytes with the indices, got " + shown(last.name()));
  checks::count(static_cast<std::uint64_t>(deck_of(last)->settings_size()), limits::kSettings,
                "entries with those of the axes", at(at(spec, kind_of(last)), "settings"),
                violations);
}

}  // namespace quasi::wire
