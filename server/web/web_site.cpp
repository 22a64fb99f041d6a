#include "server/web/web_site.hpp"

#include <chrono>

#include "server/access/rules.hpp"
#include "server/queue/refused.hpp"
#include "server/service/log.hpp"
#include "server/web/metrics_text.hpp"

namespace quasi::server {
namespace {

constexpr std::chrono::seconds kFollow{2};
constexpr std::int64_t kStoredFilesMs = 60'000;
constexpr std::int64_t kStuckMs = 10'000;

WebAnswer unauthorized(const std::string& why) {
  return {.status = 401,
          .body = why + "\n",
          .headers = {{"WWW-Authenticate",
                       "Basic realm=\"Quasi: any name, and a token as the password\""}}};
}

}  // namespace

WebSite::WebSite(WebParts parts)
    : parts_(std::move(parts)),
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

WebSite::Visitor WebSite::visitor_of(const WebRequest& request) {
  if (request.token.empty()) {
    if (parts_.is_loopback) return {};
    return {.caller = {},
            .refusal = unauthorized("this address asks for a token of the scope read: quasi admin "
                                    "token NAME --scope read")};
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
  } else {
    const Visitor visitor = visitor_of(request);
    if (visitor.refusal)
      answer = *visitor.refusal;
    else if (request.path == "/metrics")
      answer = metrics();
    else
      answer = {.status = 404, .body = "no such page; see /metrics\n"};
  }
  for (const auto& [name, value] :
       {std::pair{"Cache-Control", "no-store"}, std::pair{"X-Content-Type-Options", "nosniff"},
        std::pair{"Referrer-Policy", "no-referrer"},
        std::pair{"Content-Security-Policy",
                  "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                  "form-action 'none'"}})
    answer.headers.emplace_back(name, value);
  return answer;
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
