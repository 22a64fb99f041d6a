#include "client/commands/watch.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "client/commands/jobs.hpp"
#include "client/engine/engine_process.hpp"
#include "client/input/job_ids.hpp"
#include "client/session/waiting.hpp"
#include "client/views/job_view.hpp"
#include "client/views/live_view.hpp"
#include "client/views/outcome.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

/// With more jobs than this, a list is printed instead of the table of every result.
constexpr std::size_t kTables = 8;

Json event_json(const v1::WatchEvent& event) {
  Json json{{"time", event.has_time() ? Json(rfc3339(unix_ms(event.time()))) : Json()},
            {"job", event.job_id()},
            {"seq", event.seq()}};
  switch (event.body_case()) {
    case v1::WatchEvent::kSnapshot:
      json["event"] = "snapshot";
      json["snapshot"] = job_json(event.snapshot(), Detail::kRow);
      break;
    case v1::WatchEvent::kStateChanged: {
      const v1::StateChanged& change = event.state_changed();
      json["event"] = "state";
      json["job_seq"] = event.job_seq();
      json["from"] =
          change.from() == v1::JOB_STATE_UNSPECIFIED ? Json() : Json(state_word(change.from()));
      json["to"] = state_word(change.to());
      json["attempt"] = change.attempt() > 0 ? Json(change.attempt()) : Json();
      json["failure"] = change.has_failure() ? failure_json(change.failure()) : Json();
      json["message"] = change.message();
      break;
    }
    case v1::WatchEvent::kProgress:
      json["event"] = "progress";
      json["progress"] = progress_json(event.progress());
      break;
    case v1::WatchEvent::kLogGrown:
      json["event"] = "log";
      json["log_bytes"] = event.log_grown().log_bytes();
      break;
    case v1::WatchEvent::kCheckpoint:
      json["event"] = "checkpoint";
      json["step"] = event.checkpoint().step();
      break;
    case v1::WatchEvent::kPriority:
      json["event"] = "priority";
      json["from"] = event.priority().from();
      json["to"] = event.priority().to();
      break;
    default:
      json["event"] = "unknown";
      break;
  }
  return json;
}

/// Reports events in the form that the output format and the terminal require.
class Narrator {
 public:
  Narrator(Console& console, const std::vector<std::string>& job_ids)
      : console_(console), live_(console, job_ids) {
    const std::vector<std::string> shown = short_ids(job_ids);
    for (std::size_t i = 0; i < job_ids.size(); ++i) shown_[job_ids[i]] = shown[i];
  }

  void on_event(const v1::WatchEvent& event, const std::map<std::string, v1::Job>& jobs) {
    if (event.body_case() == v1::WatchEvent::kBookmark) return;
    if (console_.format() == Format::kJsonl) console_.record(event_json(event));
    if (event.body_case() == v1::WatchEvent::kProgress)
      live_.see(event.progress(), event.job_id(), now_unix_ms());
    if (!console_.terminal().err || event.has_priority()) say(event, jobs);
  }

  void on_tick(const std::map<std::string, v1::Job>& jobs) { live_.draw(jobs, now_unix_ms()); }

  void on_away(const std::string& why) {
    live_.set_remark(why + "; trying again …");
    if (!console_.terminal().err) console_.note(why + "; trying again");
  }
  void on_back() {
    live_.set_remark("");
    if (!console_.terminal().err) console_.note("the server is back");
  }

  /// Ends the display and leaves the last lines on the screen.
  void end() { live_.clear(); }
  LiveView& live() { return live_; }

 private:
  /// Prints a line for each state and for each phase, for output that cannot be rewritten, and a
  /// sentence for each change of the priority.
  void say(const v1::WatchEvent& event, const std::map<std::string, v1::Job>& jobs) {
    const std::string& id = event.job_id();
    const auto job = jobs.find(id);
    if (job == jobs.end()) return;
    std::string text;
    if (event.body_case() == v1::WatchEvent::kProgress) {
      if (phase_[id] == event.progress().phase()) return;
      phase_[id] = event.progress().phase();
      text = event.progress().phase();
    } else if (event.body_case() == v1::WatchEvent::kStateChanged ||
               event.body_case() == v1::WatchEvent::kSnapshot) {
      text = state_word(job->second.state());
      if (job->second.has_failure())
        text += "  " + failure_text(job->second.failure());
      else if (!event.state_changed().message().empty())
        text += "  " + printable(event.state_changed().message());
      phase_.erase(id);
    } else if (event.has_priority()) {
      text = "the priority is " + std::to_string(event.priority().to()) + " now; it was " +
             std::to_string(event.priority().from());
    } else {
      return;
    }
    if (said_[id] == text) return;
    said_[id] = text;
    console_.note(shown_[id] + "  " + text);
  }

  Console& console_;
  LiveView live_;
  std::map<std::string, std::string> shown_, phase_, said_;
};

/// Runs the command of --notify once for each job that ends.
class Notifier {
 public:
  Notifier(Console& console, std::string command)
      : console_(console), command_(std::move(command)) {}

  void on_event(const v1::WatchEvent& event, const std::map<std::string, v1::Job>& jobs) {
    const auto job = jobs.find(event.job_id());
    if (command_.empty() || job == jobs.end() || !is_final(job->second.state())) return;
    if (!told_.insert(job->first).second) return;
    // Standard output belongs to the results of this program.
    const ChildEnd end =
        run_engine("/bin/sh", {"-c", "exec >&2\n" + command_, "quasi", job->first,
                               job->second.spec().name(), state_word(job->second.state())});
    if (end.status != 0 || end.signal != 0)
      console_.warn("--notify: the command ended with " +
                    (end.signal != 0 ? "signal " + std::to_string(end.signal)
                                     : "status " + std::to_string(end.status)));
  }

 private:
  Console& console_;
  std::string command_;
  std::set<std::string> told_;
};

/// Asks the server from time to time why queued jobs wait. The live lines show each reason. Without
/// them one line says that no worker answers, once for each pool and worker.
class WaitingReasons {
 public:
  /// @param live  null if no live lines are drawn
  WaitingReasons(Session& session, LiveView* live) : session_(session), live_(live) {}

  void on_tick(const std::map<std::string, v1::Job>& jobs) {
    const std::int64_t now_ms = now_unix_ms();
    if (now_ms < next_ms_) return;
    next_ms_ = now_ms + kIntervalMs;
    int asked = 0;
    for (const auto& [id, job] : jobs) {
      const bool waits =
          (job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_BLOCKED) &&
          ++asked <= kAtMost;
      if (live_ != nullptr)
        live_->set_waiting(id, waits ? waiting_reason(session_, job) : "");
      else if (waits)
        say(id, absent_workers(session_, job));
    }
  }

 private:
  void say(const std::string& id, const std::string& why) {
    if (why.empty()) return said_.clear();
    if (said_.insert(why).second) session_.console.note(id + "  queued  " + why);
  }

  static constexpr std::int64_t kIntervalMs = 5000;
  static constexpr int kAtMost = 5;  ///< a long list would load the server
  Session& session_;
  LiveView* live_;
  std::set<std::string> said_;
  std::int64_t next_ms_ = now_unix_ms() + kIntervalMs;  ///< a job that starts at once needs none
};

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Text that says how to follow the continuing jobs again.
std::string way_back(const Session& session, const std::vector<std::string>& job_ids) {
  const std::string whom = session.state.last() == job_ids
                               ? std::string("last")
                               : (job_ids.size() == 1 ? job_ids[0] : std::string("JOB…"));
  return job_ids.size() == 1 ? "the job continues; follow it again with: quasi watch " + whom +
                                   ", or stop it: quasi cancel " + whom
                             : "the jobs continue; follow them again with: quasi watch " + whom;
}

void print_outcomes(Session& session, const std::vector<Outcome>& outcomes) {
  Console& console = session.console;
  if (console.format() == Format::kName) {
    for (const Outcome& outcome : outcomes) console.data(outcome.job.id() + "\n");
    return;
  }
  if (outcomes.size() > kTables) {
    std::vector<v1::Job> jobs;
    for (const Outcome& outcome : outcomes) jobs.push_back(outcome.job);
    console.data(jobs_table(console, jobs, now_unix_ms()));
    return;
  }
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (i > 0) console.data("\n");
    console.data(outcome_text(console, outcomes[i], true));
  }
}

/// Advises once what to do after a failure or a result.
void advise(Session& session, const std::vector<Outcome>& outcomes) {
  if (!session.console.terminal().err) return;
  for (const Outcome& outcome : outcomes) {
    if (outcome.job.state() == v1::JOB_STATE_FAILED)
      return session.console.note("see its log: quasi logs " + outcome.job.id());
  }
  for (const Outcome& outcome : outcomes) {
    if (outcome.job.state() == v1::JOB_STATE_SUCCEEDED && !outcome.job.artifacts().empty())
      return session.console.note(outcomes.size() > 1
                                      ? "get the files of one job: quasi fetch " + outcome.job.id()
                                      : "get its files: quasi fetch " + outcome.job.id());
  }
}

/// Prints the jobs that have ended, in the form that the narration asks for.
ExitStatus print_ends(Session& session, const std::vector<std::string>& ended, Narration narration,
                      const Json& head) {
  Console& console = session.console;
  std::vector<Outcome> outcomes;
  std::vector<v1::Job> final_jobs;
  for (const std::string& id : ended) {
    outcomes.push_back(fetch_outcome(session, id));
    final_jobs.push_back(outcomes.back().job);
  }
  if (console.json()) {
    Json document = head;
    document["jobs"] = Json::array();
    for (const Outcome& outcome : outcomes) {
      Json job = job_json(outcome.job, Detail::kFull);
      job["table"] = outcome.table.empty() ? Json() : Json(outcome.table);
      document["jobs"].push_back(std::move(job));
    }
    console.document(document);
  } else if (narration == Narration::kShown) {
    print_outcomes(session, outcomes);
    advise(session, outcomes);
  } else {
    for (const v1::Job& job : final_jobs)
      console.data(console.format() == Format::kName
                       ? job.id() + "\n"
                       : job.id() + "  " +
                             console.paint(colour_of(job.state()), state_word(job.state())) + "\n");
  }
  return status_of_jobs(final_jobs);
}

}  // namespace

ExitStatus follow_and_report(Session& session, const std::vector<std::string>& job_ids, Until until,
                             Narration narration, const Json& head, const std::string& notify) {
  Console& console = session.console;
  std::map<std::string, v1::Job> jobs;
  FollowOptions options{.job_ids = job_ids, .until = until};
  if (session.timeout_given) options.limit_s = session.config.timeout_s.value;
  FollowEnd end = FollowEnd::kDone;
  Notifier notifier(console, notify);
  options.on_event = [&](const v1::WatchEvent& event) { notifier.on_event(event, jobs); };
  if (narration == Narration::kShown) {
    Narrator narrator(console, job_ids);
    WaitingReasons reasons(session, console.terminal().err ? &narrator.live() : nullptr);
    options.on_event = [&](const v1::WatchEvent& event) {
      narrator.on_event(event, jobs);
      notifier.on_event(event, jobs);
    };
    options.on_tick = [&] {
      reasons.on_tick(jobs);
      narrator.on_tick(jobs);
    };
    options.on_away = [&](const std::string& why) { narrator.on_away(why); };
    options.on_back = [&] { narrator.on_back(); };
    end = follow(session.server, options, jobs);
    narrator.end();
  } else {
    WaitingReasons reasons(session, nullptr);
    options.on_tick = [&] { reasons.on_tick(jobs); };
    end = follow(session.server, options, jobs);
  }

  std::vector<std::string> ended;
  for (const std::string& id : job_ids)
    if (is_final(jobs[id].state())) ended.push_back(id);

  if (end == FollowEnd::kInterrupted) {
    Failure failure(static_cast<ExitStatus>(interrupt::exit_status()), "interrupted",
                    way_back(session, job_ids));
    throw failure;
  }
  if (end == FollowEnd::kTimedOut)
    throw Failure(ExitStatus::kTimedOut,
                  "after " + readable_seconds(session.config.timeout_s.value) + ", " +
                      plural(job_ids.size() - ended.size(), "job") + " of " +
                      std::to_string(job_ids.size()) + " had not ended",
                  way_back(session, job_ids));

  return print_ends(session, ended, narration, head);
}

ExitStatus watch(Session& session, const WatchOptions& options) {
  std::vector<std::string> ids;
  if (options.jobs.empty()) {
    v1::ListJobsRequest request;
    for (const std::string& word : state_words())
      if (!is_final(state_of_word(word))) request.mutable_filter()->add_states(state_of_word(word));
    request.set_page_size(1000);
    request.set_order(v1::ListJobsRequest::ORDER_CREATED_ASCENDING);
    const v1::ListJobsResponse page = session.server.call(&Jobs::ListJobs, request);
    for (const v1::Job& job : page.jobs()) ids.push_back(job.id());
    if (!page.next_page_token().empty())
      session.console.note("more than 1,000 jobs have not ended; these are the oldest 1,000");
    if (ids.empty()) {
      if (session.console.json())
        session.console.document({{"jobs", Json::array()}});
      else
        session.console.note("no job is waiting or running; see the newest jobs: quasi list");
      return ExitStatus::kOk;
    }
  } else {
    ids = resolve_job_ids(session, options.jobs);
    // `follow` waits for a server that stops answering. This call fails at once if the server does
    // not answer at the start.
    (void)session.server.call(&Jobs::GetCapabilities, v1::GetCapabilitiesRequest());
  }
  return follow_and_report(session, ids, Until::kAll, Narration::kShown, Json::object(),
                           options.notify);
}

ExitStatus wait(Session& session, const WaitOptions& options) {
  const std::vector<std::string> ids = resolve_job_ids(session, options.jobs);
  (void)session.server.call(&Jobs::GetCapabilities, v1::GetCapabilitiesRequest());
  return follow_and_report(session, ids, options.any ? Until::kAny : Until::kAll,
                           Narration::kSilent, Json::object(), options.notify);
}

}  // namespace quasi::client
