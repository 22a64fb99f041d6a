#include "client/commands/jobs.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "client/commands/sweeps/sets.hpp"
#include "client/input/job_file.hpp"
#include "client/input/job_ids.hpp"
#include "client/input/sweeps/set_ids.hpp"
#include "client/session/waiting.hpp"
#include "client/views/job_view.hpp"
#include "client/views/outcome.hpp"
#include "client/views/readable.hpp"
#include "client/views/table.hpp"
#include "proto/wire/validate.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

/// Owner of jobs on a server that asks for no tokens.
constexpr std::string_view kLocalOwner = "local";

constexpr int kJobsPerPage = 1000;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void add_states(const std::vector<std::string>& words, v1::JobFilter& filter) {
  for (const std::string& word : words) {
    if (word == "active" || word == "ended") {
      for (const std::string& state : state_words())
        if (is_final(state_of_word(state)) == (word == "ended"))
          filter.add_states(state_of_word(state));
      continue;
    }
    const v1::JobState state = state_of_word(word);
    if (state == v1::JOB_STATE_UNSPECIFIED) {
      std::vector<std::string> known = state_words();
      known.insert(known.end(), {"active", "ended"});
      const std::string nearest = nearest_name(word, known);
      throw Failure(ExitStatus::kUsage,
                    "--state: no state '" + word + "'" +
                        (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
                    "states: " + joined(known));
    }
    filter.add_states(state);
  }
}

void set_time_before_now(const std::string& flag, const std::string& text,
                         google::protobuf::Timestamp& time) {
  const auto seconds = parse_duration_seconds(text);
  if (!seconds)
    throw Failure(ExitStatus::kUsage, flag + ": '" + text + "' is not a time span",
                  "give the age of the jobs, like 90s, 15m, 2h or 3d");
  time.set_seconds(now_unix_ms() / 1000 - static_cast<std::int64_t>(*seconds));
}

v1::JobFilter filter_of(const ListOptions& options) {
  v1::JobFilter filter;
  add_states(options.states, filter);
  for (const std::string& kind : options.kinds) {
    const std::vector<std::string>& known = wire::all_kinds();
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      const std::string nearest = nearest_name(kind, wire::offered_kinds());
      throw Failure(ExitStatus::kUsage,
                    "--kind: no kind '" + kind + "'" +
                        (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
                    "kinds: " + joined(wire::offered_kinds()));
    }
    filter.add_kinds(kind);
  }
  for (const std::string& label : options.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Failure(ExitStatus::kUsage, "--label: '" + label + "' is not of the form key=value",
                    "e.g. --label project=thesis");
    (*filter.mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  filter.set_name_prefix(options.name);
  if (!options.since.empty())
    set_time_before_now("--since", options.since, *filter.mutable_created_after());
  if (!options.until.empty())
    set_time_before_now("--until", options.until, *filter.mutable_created_before());
  return filter;
}

/// Time from a job's first start to its end, or to the present while it runs.
std::string duration_cell(const v1::Job& job, std::int64_t now_ms) {
  const bool waits_again =
      job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_LEASED;
  if (!job.has_started() || waits_again) return "";
  const std::int64_t end = job.has_ended() ? unix_ms(job.ended()) : now_ms;
  return readable_seconds(static_cast<double>(end - unix_ms(job.started())) / 1e3);
}

std::string progress_cell(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_FAILED && job.has_failure())
    return reason_word(job.failure().reason());
  if (job.state() != v1::JOB_STATE_RUNNING || !job.has_progress()) return "";
  const v1::Progress& progress = job.progress();
  if (progress.total() <= 0) return progress.phase();
  return progress.phase() + " " +
         std::to_string(std::llround(100.0 * static_cast<double>(progress.done()) /
                                     static_cast<double>(progress.total()))) +
         " %";
}

std::string moment(bool present, const google::protobuf::Timestamp& time, std::int64_t now_ms) {
  if (!present) return "";
  return local_time(unix_ms(time)) + "  (" + readable_age(unix_ms(time), now_ms) + ")";
}

std::string settings_text(const v1::DeckWork& work) {
  std::string text;
  for (const v1::Setting& setting : work.settings())
    text += (text.empty() ? "" : "  ") + setting.key() + "=" + setting.value();
  return text;
}

/// The file of an input, and the job that makes it.
std::string input_text(const v1::Input& input) {
  std::string text;
  if (input.has_from()) text = "  " + input.from().artifact() + " of " + input.from().job_id();
  if (!input.digest().empty())
    text += "  " + readable_bytes(input.size_bytes()) + "  sha256:" + input.digest().substr(0, 16);
  return text;
}

/// The cage around the engine of an attempt, in one word; "" if its worker reported none.
std::string cage_word(const v1::Attempt& attempt) {
  if (!attempt.has_isolation()) return "";
  if (attempt.isolation().whole()) return "whole";
  return attempt.isolation().walls().empty() ? "none" : "partial";
}

std::string attempts_table(const v1::Job& job, std::int64_t now_ms) {
  Table table({{"ATTEMPT", Table::Align::kRight},
               {"WORKER"},
               {"DEVICE"},
               {"OUTCOME"},
               {"RAN", Table::Align::kRight},
               {"CAGE"},
               {"WHY"}});
  for (const v1::Attempt& attempt : job.attempt_history()) {
    std::string devices;
    for (const std::string& device : attempt.device_ids())
      devices += (devices.empty() ? "" : ",") + device.substr(0, 12);
    const bool open = attempt.outcome() == v1::ATTEMPT_OUTCOME_UNSPECIFIED;
    const std::int64_t end = attempt.has_ended() ? unix_ms(attempt.ended()) : now_ms;
    table.add(
        {std::to_string(attempt.number()), attempt.worker_name(), devices,
         open ? "open" : enum_word(*v1::AttemptOutcome_descriptor(), attempt.outcome()),
         attempt.has_started()
             ? readable_seconds(static_cast<double>(end - unix_ms(attempt.started())) / 1e3)
             : "",
         cage_word(attempt),
         attempt.has_failure() ? failure_text(attempt.failure()) : attempt.release_message()});
  }
  return table.text();
}

std::string artifacts_table(const v1::Job& job) {
  Table table({{"FILE"}, {"SIZE", Table::Align::kRight}, {"SHA-256"}});
  for (const v1::Artifact& artifact : job.artifacts())
    table.add(
        {artifact.name(), readable_bytes(artifact.size_bytes()), artifact.digest().substr(0, 16)});
  return table.text();
}

}  // namespace

std::string jobs_table(const Console& console, const std::vector<v1::Job>& jobs,
                       std::int64_t now_ms) {
  std::vector<std::string> ids;
  for (const v1::Job& job : jobs) ids.push_back(job.id());
  if (console.format() == Format::kName) {
    std::string text;
    for (const std::string& id : ids) text += id + "\n";
    return text;
  }
  const bool wide = console.format() == Format::kWide;
  std::vector<Table::Column> columns{{"ID"},
                                     {"NAME"},
                                     {"KIND"},
                                     {"STATE"},
                                     {"AGE", Table::Align::kRight},
                                     {"RAN", Table::Align::kRight},
                                     {"PROGRESS"}};
  if (wide)
    columns.insert(
        columns.end(),
        {{"ATTEMPTS", Table::Align::kRight}, {"PRIORITY", Table::Align::kRight}, {"LABELS"}});
  // Without principals every job is the owner's of the server, and the column would say nothing.
  const bool with_owners = std::any_of(jobs.begin(), jobs.end(), [](const v1::Job& job) {
    return !job.owner().empty() && job.owner() != kLocalOwner;
  });
  if (with_owners) columns.insert(columns.begin() + 1, {"OWNER"});
  const std::size_t state_column = with_owners ? 4 : 3;
  Table table(std::move(columns));
  const std::vector<std::string> shown = wide ? ids : short_ids(ids);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const v1::Job& job = jobs[i];
    std::vector<std::string> row{
        shown[i],
        job.spec().name(),
        job.kind(),
        state_word(job.state()),
        job.has_created() ? readable_age(unix_ms(job.created()), now_ms) : "",
        duration_cell(job, now_ms),
        progress_cell(job)};
    if (with_owners) row.insert(row.begin() + 1, job.owner());
    if (wide) {
      const std::map<std::string, std::string> labels(job.spec().labels().begin(),
                                                      job.spec().labels().end());
      std::string text;
      for (const auto& [key, value] : labels) text += (text.empty() ? "" : ",") + key + "=" + value;
      row.insert(row.end(),
                 {std::to_string(job.attempts()) + "/" + std::to_string(job.max_attempts()),
                  std::to_string(job.priority()), text});
    }
    table.add(std::move(row));
  }
  constexpr std::size_t kRan = 5, kKind = 2, kAge = 4, kProgress = 6, kName = 1;
  if (console.terminal().out && !wide)
    table.fit(static_cast<std::size_t>(console.terminal().columns),
              {kRan, kKind, kAge, kProgress, kName});
  return table.text([&](int row, std::size_t column, std::string cell) {
    if (row < 0) return console.paint(Colour::kDim, cell);
    if (column == state_column)
      return console.paint(colour_of(jobs[static_cast<std::size_t>(row)].state()), cell);
    return cell;
  });
}

std::string job_page(const Console& console, const v1::Job& job, std::int64_t now_ms,
                     const std::string& waiting) {
  std::string text =
      console.paint(Colour::kBold, job.id()) + "  " + printable(job.spec().name()) + "\n";
  const auto line = [&](const std::string& name, const std::string& value) {
    if (value.empty()) return;
    std::string padded = name;
    padded.resize(11, ' ');
    text += "  " + console.paint(Colour::kDim, padded) + printable(value) + "\n";
  };
  std::string state = state_word(job.state());
  if (job.has_progress() && job.state() == v1::JOB_STATE_RUNNING)
    state += ": " + progress_cell(job);
  text += "  " + console.paint(Colour::kDim, "state      ") +
          console.paint(colour_of(job.state()), printable(state)) + "\n";
  line("because", waiting);
  if (job.has_failure())
    line(job.state() == v1::JOB_STATE_FAILED ? "why" : "last try", failure_text(job.failure()));
  if (!job.cancel_reason().empty()) line("cancelled", job.cancel_reason());
  if (job.has_cancel_requested() && !is_final(job.state()))
    line("cancel", "asked for " + readable_age(unix_ms(job.cancel_requested()), now_ms));
  if (!job.owner().empty() && job.owner() != kLocalOwner)
    line("owner",
         job.owner() + " of " + job.tenant() +
             (job.spec().visibility() == v1::VISIBILITY_TENANT ? ", who may read it" : ""));
  line("kind", job.kind());
  if (const v1::DeckWork* work = wire::deck_of(job.spec())) {
    line("settings", settings_text(*work));
    if (work->device() > v1::DEVICE_PREFERENCE_AUTO)
      line("device", enum_word(*v1::DevicePreference_descriptor(), work->device()));
  }
  if (job.reused())
    line("result", job.reused_from().empty() ? "of an equal job" : "of " + job.reused_from());
  line("created", moment(job.has_created(), job.created(), now_ms));
  line("started", moment(job.has_started(), job.started(), now_ms));
  line("ended", moment(job.has_ended(), job.ended(), now_ms));
  line("ran", duration_cell(job, now_ms));
  if (job.has_not_before() && !is_final(job.state()) && unix_ms(job.not_before()) > now_ms)
    line("not before", local_time(unix_ms(job.not_before())));
  line("attempts", std::to_string(job.attempts()) + " of " + std::to_string(job.max_attempts()));
  if (job.has_checkpoint())
    line("checkpoint", "at step " + std::to_string(job.checkpoint().step()));
  if (job.priority() != 0) line("priority", std::to_string(job.priority()));
  const std::map<std::string, std::string> labels(job.spec().labels().begin(),
                                                  job.spec().labels().end());
  for (const auto& [key, value] : labels) line("label", key + "=" + value);
  if (!job.job_set_id().empty()) line("set", job.job_set_id());
  for (const v1::AwaitedJob& other : job.dependencies())
    line(
        "after",
        other.job_id() + "  " + printable(other.name()) + "  " + state_word(other.state()) +
            (other.condition() == v1::Dependency::CONDITION_FINISHED ? "  (however it ends)" : ""));
  for (const v1::Input& input : job.spec().inputs())
    line("input", input.slot() + input_text(input));
  if (job.attempt_history_size() > 0) text += "\n" + attempts_table(job, now_ms);
  if (job.artifacts_size() > 0) text += "\n" + artifacts_table(job);
  return text;
}

ExitStatus list(Session& session, const ListOptions& options) {
  if (options.limit < 1)
    throw Failure(ExitStatus::kUsage,
                  "--limit: must be at least 1, got " + std::to_string(options.limit),
                  "use --all to list every job");
  if (options.sets) return list_sets(session, options.all ? 0 : options.limit);
  v1::ListJobsRequest request;
  *request.mutable_filter() = filter_of(options);
  if (!options.set.empty()) {
    const auto set = only_set(session, {options.set});
    if (!set)
      throw Failure(ExitStatus::kNotFound, "--set: there is no set of jobs '" + options.set + "'",
                    "see your sets: quasi list --sets");
    request.mutable_filter()->set_job_set_id(set->id());
  }
  request.set_order(options.oldest_first ? v1::ListJobsRequest::ORDER_CREATED_ASCENDING
                                         : v1::ListJobsRequest::ORDER_CREATED_DESCENDING);
  std::vector<v1::Job> jobs;
  bool more = true;
  while (more) {
    const int wanted = options.all ? kJobsPerPage : options.limit - static_cast<int>(jobs.size());
    request.set_page_size(std::min(kJobsPerPage, wanted));
    v1::ListJobsResponse page = session.server.call(&Jobs::ListJobs, request);
    for (v1::Job& job : *page.mutable_jobs()) jobs.push_back(std::move(job));
    request.set_page_token(page.next_page_token());
    more = !page.next_page_token().empty();
    if (!options.all && static_cast<int>(jobs.size()) >= options.limit) break;
  }
  Console& console = session.console;
  if (console.format() == Format::kJsonl) {
    for (const v1::Job& job : jobs) console.record(job_json(job, Detail::kRow));
  } else if (console.format() == Format::kJson) {
    Json document{{"jobs", Json::array()}, {"more", more}};
    for (const v1::Job& job : jobs) document["jobs"].push_back(job_json(job, Detail::kRow));
    console.document(document);
  } else if (jobs.empty()) {
    console.note("no jobs");
  } else {
    console.data(jobs_table(console, jobs, now_unix_ms()));
    if (more)
      console.note("the " + std::string(options.oldest_first ? "oldest " : "newest ") +
                   std::to_string(jobs.size()) + "; use -n N or --all to list more");
  }
  return ExitStatus::kOk;
}

ExitStatus show(Session& session, const ShowOptions& options) {
  if (const auto set = only_set(session, options.jobs)) return show_set(session, *set);
  const std::vector<std::string> ids = resolve_job_ids(session, options.jobs);
  Console& console = session.console;
  Json document{{"jobs", Json::array()}};
  bool first = true;
  for (const std::string& id : ids) {
    const Outcome outcome = fetch_outcome(session, id);
    const std::string waiting = waiting_reason(session, outcome.job);
    if (console.json()) {
      Json job = job_json(outcome.job, Detail::kFull);
      job["waiting_because"] = waiting.empty() ? Json() : Json(waiting);
      if (console.format() == Format::kJsonl)
        console.record(job);
      else
        document["jobs"].push_back(std::move(job));
    } else if (console.format() == Format::kName) {
      console.data(id + "\n");
    } else {
      if (!first) console.data("\n");
      console.data(job_page(console, outcome.job, now_unix_ms(), waiting));
      const std::string result = outcome.job.state() == v1::JOB_STATE_SUCCEEDED
                                     ? outcome_text(console, outcome, false)
                                     : "";
      if (!result.empty()) console.data("\n" + result);
    }
    first = false;
  }
  if (console.format() == Format::kJson) console.document(document);
  return ExitStatus::kOk;
}

}  // namespace quasi::client
