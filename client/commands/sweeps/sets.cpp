#include "client/commands/sweeps/sets.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/input/sweeps/stop_rules.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "client/views/table.hpp"

namespace quasi::client {
namespace {

constexpr int kSetsOfAPage = 1000;

std::uint64_t jobs_in(const v1::JobSet& set) {
  std::uint64_t jobs = 0;
  for (const auto& count : set.counts()) jobs += count.jobs();
  return jobs;
}

/// "3 running, 12 succeeded"
std::string counts_text(const v1::JobSet& set) {
  std::string text;
  for (const auto& count : set.counts())
    text +=
        (text.empty() ? "" : ", ") + std::to_string(count.jobs()) + " " + state_word(count.state());
  return text;
}

Json set_json(const v1::JobSet& set) {
  Json counts = Json::object();
  for (const auto& count : set.counts()) counts[state_word(count.state())] = count.jobs();
  Json axes = Json::array();
  for (const v1::SweepAxis& axis : set.axes()) {
    Json points = Json::array();
    for (const v1::SweepPoint& point : axis.points())
      points.push_back(std::vector<std::string>(point.values().begin(), point.values().end()));
    axes.push_back({{"keys", std::vector<std::string>(axis.keys().begin(), axis.keys().end())},
                    {"points", points}});
  }
  Json rules = Json::array();
  for (const auto& state : set.stop_rules()) {
    const wire::StopCondition condition = condition_of(state.rule());
    rules.push_back({{"figure", condition.figure},
                     {"comparison", std::string(wire::sign_of(condition.comparison))},
                     {"value", condition.value},
                     {"jobs", condition.jobs},
                     {"jobs_met", state.jobs_met()},
                     {"jobs_lacking", state.jobs_lacking()}});
  }
  return {{"id", set.id()},
          {"name", set.name()},
          {"owner", set.owner()},
          {"created", rfc3339(unix_ms(set.created()))},
          {"jobs", jobs_in(set)},
          {"counts", counts},
          {"max_concurrent", set.max_concurrent()},
          {"stop_after_failures", set.stop_after_failures()},
          {"stop_rules", rules},
          {"stopped", set.has_stopped() ? Json(rfc3339(unix_ms(set.stopped()))) : Json()},
          {"stop_reason", set.stop_reason().empty() ? Json() : Json(set.stop_reason())},
          {"axes", axes}};
}

/// The values of an axis in one line, e.g. "T = 100, 200, … 600 (11 points)".
std::string axis_text(const v1::SweepAxis& axis) {
  constexpr int kShown = 4;
  std::string keys, values;
  for (const std::string& key : axis.keys()) keys += (keys.empty() ? "" : ", ") + key;
  for (int i = 0; i < axis.points_size(); ++i) {
    if (i >= kShown && i + 1 < axis.points_size()) continue;
    std::string point;
    for (const std::string& value : axis.points(i).values())
      point += (point.empty() ? "" : " ") + value;
    const bool skips = axis.points_size() > kShown + 1 && i + 1 == axis.points_size();
    values += (i == 0 ? "" : skips ? ", … " : ", ") + point;
  }
  return keys + " = " + values + "  (" + std::to_string(axis.points_size()) + " points)";
}

/// "kappa.xx < 50 in 3 jobs; met by 1 so far"
std::string rule_text(const v1::JobSet::StopRuleState& state) {
  std::string text = wire::text_of(condition_of(state.rule())) + "; met by " +
                     std::to_string(state.jobs_met()) + " so far";
  if (state.jobs_lacking() > 0)
    text += "; " + std::to_string(state.jobs_lacking()) +
            " results have no number of this name, see quasi table";
  return text;
}

std::string set_page(const Console& console, const v1::JobSet& set) {
  std::string text = console.paint(Colour::kBold, set.id()) + "  " + printable(set.name()) + "\n";
  const auto line = [&](std::string name, const std::string& value) {
    name.resize(11, ' ');
    if (!value.empty()) text += "  " + console.paint(Colour::kDim, name) + printable(value) + "\n";
  };
  line("jobs", std::to_string(jobs_in(set)) + ": " + counts_text(set));
  for (const v1::SweepAxis& axis : set.axes()) line("axis", axis_text(axis));
  if (set.max_concurrent() > 0) line("at a time", std::to_string(set.max_concurrent()) + " jobs");
  if (set.stop_after_failures() > 0)
    line("stops after", std::to_string(set.stop_after_failures()) + " failures");
  for (const auto& state : set.stop_rules()) line("stops when", rule_text(state));
  if (set.has_stopped())
    line("stopped", local_time(unix_ms(set.stopped())) +
                        (set.stop_reason().empty() ? "" : ": " + set.stop_reason()));
  line("created", local_time(unix_ms(set.created())));
  return text;
}

}  // namespace

ExitStatus list_sets(Session& session, int limit) {
  v1::ListJobSetsRequest request;
  std::vector<v1::JobSet> sets;
  do {
    request.set_page_size(limit > 0 ? std::min(kSetsOfAPage, limit - static_cast<int>(sets.size()))
                                    : kSetsOfAPage);
    v1::ListJobSetsResponse page = session.server.call(&Jobs::ListJobSets, request);
    for (v1::JobSet& set : *page.mutable_job_sets()) sets.push_back(std::move(set));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && (limit == 0 || static_cast<int>(sets.size()) < limit));
  Console& console = session.console;
  if (console.json()) {
    Json document{{"sets", Json::array()}};
    for (const v1::JobSet& set : sets) {
      Json row = set_json(set);
      row.erase("axes");
      if (console.format() == Format::kJsonl)
        console.record(row);
      else
        document["sets"].push_back(std::move(row));
    }
    if (console.format() == Format::kJson) console.document(document);
  } else if (console.format() == Format::kName) {
    for (const v1::JobSet& set : sets) console.data(set.id() + "\n");
  } else if (sets.empty()) {
    console.note("no sets of jobs; quasi submit --sweep makes one");
  } else {
    Table table({{"SET"},
                 {"NAME"},
                 {"JOBS", Table::Align::kRight},
                 {"AGE", Table::Align::kRight},
                 {"STATES"}});
    std::vector<std::string> ids;
    for (const v1::JobSet& set : sets) ids.push_back(set.id());
    const std::vector<std::string> shown = short_ids(ids);
    for (std::size_t i = 0; i < sets.size(); ++i)
      table.add({shown[i], printable(sets[i].name()), std::to_string(jobs_in(sets[i])),
                 readable_age(unix_ms(sets[i].created()), now_unix_ms()), counts_text(sets[i])});
    console.data(table.text());
  }
  return ExitStatus::kOk;
}

ExitStatus show_set(Session& session, const v1::JobSet& set) {
  Console& console = session.console;
  if (console.json())
    console.document({{"set", set_json(set)}});
  else if (console.format() == Format::kName)
    console.data(set.id() + "\n");
  else
    console.data(set_page(console, set));
  return ExitStatus::kOk;
}

}  // namespace quasi::client
