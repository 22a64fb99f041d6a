#include "server/web/web_site.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "server/access/rules.hpp"
#include "server/queue/refused.hpp"
#include "server/service/log.hpp"
#include "server/web/metrics_text.hpp"

namespace quasi::server {
namespace {

constexpr std::chrono::seconds kFollow{2};
constexpr std::int64_t kStoredFilesMs = 60'000;
constexpr std::int64_t kNoteJobsMs = 15'000;
constexpr std::int64_t kStuckMs = 10'000;
constexpr char kAsksForToken[] =
    "this page asks for a token of the scope read: quasi admin token NAME --scope read";

WebAnswer unauthorized(const std::string& why) {
  return {.status = 401,
          .body = why + "\n",
          .headers = {{"WWW-Authenticate",
                       "Basic realm=\"Quasi: any name, and a token as the password\""}}};
}

/// The id of the path of a job; "" if it is none.
std::string job_of_path(const std::string& path) {
  constexpr std::string_view kJobs = "/jobs/";
  constexpr std::size_t kMostId = 40;
  if (!path.starts_with(kJobs) || path.size() > kJobs.size() + kMostId) return {};
  const std::string id = path.substr(kJobs.size());
  const bool is_id = id.starts_with("j_") && std::all_of(id.begin(), id.end(), [](char c) {
                       return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                              (c >= 'a' && c <= 'z');
                     });
  return is_id ? id : std::string();
}

/// The first page has a second path, at which it asks a browser for a token.
bool is_overview(const std::string& path) { return path == "/" || path == "/sign-in"; }

bool is_page(const std::string& path) { return is_overview(path) || path.starts_with("/jobs/"); }

WebAnswer html_answer(unsigned int status, std::string body) {
  return {.status = status, .type = "text/html; charset=utf-8", .body = std::move(body)};
}

}  // namespace

WebSite::WebSite(WebParts parts)
    : parts_(std::move(parts)),
      reader_(parts_),
      store_(parts_.database_path),
      jobs_(store_),
      thread_([this] { run(); }) {}

WebSite::~WebSite() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

/// Follows the event log, so that a scrape after a long pause has little left to read.
void WebSite::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    try {
      jobs_.follow();
      note_jobs();
      const std::int64_t now = parts_.clock.now().monotonic_ms;
      if (stored_read_ms_ == 0 || now - stored_read_ms_ >= kStoredFilesMs) {
        stored_ = store_.stored_files();
        stored_read_ms_ = now;
      }
    } catch (const SqliteError& error) {
      log(Level::kWarning, "metrics_not_read", {{"what", error.what()}});
    }
    changed_.wait_for(lock, kFollow, [this] { return stop_; });
  }
}

/// Notes the numbers of jobs for their history. A pass costs time with many jobs, so it is rare.
void WebSite::note_jobs() {
  const Now now = parts_.clock.now();
  if (jobs_noted_ms_ != 0 && now.monotonic_ms - jobs_noted_ms_ < kNoteJobsMs) return;
  jobs_noted_ms_ = now.monotonic_ms;
  std::int64_t queued = 0, running = 0;
  for (const UnfinishedJobs& row : store_.unfinished())
    (row.state >= JobState::kLeased ? running : queued) += row.jobs;
  parts_.fleet.put_jobs(queued, running, now);
}

WebSite::Visitor WebSite::visitor_of(const WebRequest& request) {
  if (request.token.empty()) {
    if (parts_.is_loopback) return {};
    return {.caller = {}, .refusal = unauthorized(kAsksForToken)};
  }
  const Now now = parts_.clock.now();
  try {
    Caller caller = parts_.directory.authenticate(request.token, now.wall_ms);
    if (may_call(caller.role, "GetJob") && caller.scopes.meets(scopes_for("GetJob")))
      return {.caller = std::move(caller), .refusal = {}};
    return {.caller = {},
            .refusal = WebAnswer{.status = 403,
                                 .body = "this token may not read jobs; ask an admin for one with "
                                         "the scope read\n"}};
  } catch (const Refused& refused) {
    const std::int64_t wait_ms =
        parts_.failed_logins.add(host_of_peer(request.peer), now.monotonic_ms);
    if (wait_ms == 0) {
      parts_.on_refused_login(request.peer, refused.reason);
      return {.caller = {}, .refusal = unauthorized(refused.what())};
    }
    return {.caller = {},
            .refusal =
                WebAnswer{.status = 429,
                          .body = "too many logins from this address failed\n",
                          .headers = {{"Retry-After", std::to_string((wait_ms + 999) / 1'000)}}}};
  }
}

WebAnswer WebSite::answer(const WebRequest& request) {
  WebAnswer answer;
  if (request.path == "/healthz") {
    answer.body = "alive\n";
  } else if (request.path == "/readyz") {
    answer = ready();
  } else if (request.path == "/style.css") {
    answer = {.type = "text/css; charset=utf-8", .body = style_sheet()};
  } else {
    const Visitor visitor = visitor_of(request);
    if (visitor.refusal)
      answer = *visitor.refusal;
    else if (request.path == "/metrics")
      answer = metrics();
    else if (is_page(request.path))
      answer = page(request, visitor.caller);
    else
      answer = {.status = 404, .body = "no such page; see / and /metrics\n"};
  }
  for (const auto& [name, value] :
       {std::pair{"Cache-Control", "no-store"}, std::pair{"X-Content-Type-Options", "nosniff"},
        std::pair{"Referrer-Policy", "no-referrer"},
        std::pair{"Cross-Origin-Opener-Policy", "same-origin"},
        std::pair{"Cross-Origin-Resource-Policy", "same-origin"},
        std::pair{"Content-Security-Policy",
                  "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                  "form-action 'none'"}})
    answer.headers.emplace_back(name, value);
  return answer;
}

std::optional<WebAnswer> WebSite::refusal_by_rate(const Caller& caller) {
  try {
    parts_.call_rates.charge(caller, "GetJob", parts_.clock.now().monotonic_ms);
    return std::nullopt;
  } catch (const Refused& refused) {
    return WebAnswer{.status = 429,
                     .body = std::string(refused.what()) + "\n",
                     .headers = {{"Retry-After", "1"}}};
  }
}

WebAnswer WebSite::page(const WebRequest& request, const std::optional<Caller>& caller) {
  if (!caller && request.path != "/") return unauthorized(kAsksForToken);
  if (caller)
    if (auto refusal = refusal_by_rate(*caller)) return *refusal;
  const std::optional<Scope> scope =
      caller ? std::optional(parts_.scope_of(*caller)) : std::nullopt;
  PageFrame frame{.title = "Status",
                  .path = "/",
                  .refreshes = request.refreshes,
                  .now_ms = parts_.clock.now().wall_ms,
                  .version = QUASI_VERSION};
  if (caller)
    frame.visitor =
        caller->name + ", " + std::string(word_of(caller->role)) + " of " + caller->tenant;
  if (is_overview(request.path))
    return html_answer(200, whole_page(frame, overview_content(reader_.overview(scope))));
  const std::string id = job_of_path(request.path);
  const std::optional<JobPage> job = id.empty() ? std::nullopt : reader_.job(*scope, id);
  if (!job) {
    // A job of others and a job that never was give the same bytes (I15).
    frame.title = "No such job";
    Html content;
    content.markup("<h1>There is no such job</h1>\n<p><a href=\"/\">To the status page</a></p>\n");
    return html_answer(404, whole_page(frame, content));
  }
  frame.title = job->job.row.name.empty() ? job->job.row.uid : job->job.row.name;
  frame.path = "/jobs/" + job->job.row.uid;
  return html_answer(200, whole_page(frame, job_content(*job)));
}

WebAnswer WebSite::ready() {
  const ServerState state = parts_.state();
  const std::int64_t silent_ms = parts_.clock.now().monotonic_ms - parts_.writer.committed_ms;
  std::string why;
  if (state.is_stopping)
    why = "the server is stopping";
  else if (silent_ms > kStuckMs)
    why = "the writer has committed nothing for " + std::to_string(silent_ms / 1'000) + " s";
  else if (state.storage_low)
    why = "the disk is nearly full, and new work is refused";
  return {.status = why.empty() ? 200U : 503U, .body = (why.empty() ? "ready" : why) + "\n"};
}

WebAnswer WebSite::metrics() {
  Exposition out;
  write_store(out);
  parts_.calls.write(out);
  write_writer(out, parts_.writer, parts_.database_path);
  write_files(out, parts_.files, parts_.state());
  write_fleet(out, *parts_.fleet.view());
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = out.text()};
}

void WebSite::write_store(Exposition& out) {
  const std::lock_guard lock(mutex_);
  jobs_.follow();
  write_queue(out, store_.unfinished(), parts_.clock.now().wall_ms);
  jobs_.write(out);
  out.family("quasi_blob_bytes", "gauge", "Bytes of stored files, read once a minute.");
  out.sample(static_cast<double>(stored_.bytes));
}

}  // namespace quasi::server
