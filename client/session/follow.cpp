#include "client/session/follow.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"

namespace quasi::client {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// The set of so many jobs that a filter cannot name them; "" for fewer jobs.
std::string set_of_many(Connection& server, const std::vector<std::string>& ids) {
  if (ids.size() <= limits::kIdsPerCall) return "";
  v1::GetJobRequest request;
  request.set_job_id(ids.front());
  const std::string set = server.call(&Jobs::GetJob, request).job().job_set_id();
  if (set.empty())
    throw Failure(ExitStatus::kUsage,
                  std::to_string(ids.size()) + " jobs are more than can be followed at once, " +
                      std::to_string(limits::kIdsPerCall) + ", unless they are one sweep",
                  "follow fewer of them");
  return set;
}

/// Reads the stream on a thread of its own, over any number of connections, and queues the events
/// in order.
class EventReader {
 public:
  struct Item {
    enum class What { kEvent, kAway, kBack, kFailed } what;
    v1::WatchEvent event;
    grpc::Status status;
  };

  EventReader(Connection& server, const FollowOptions& options)
      : stub_(server.jobs()),
        options_(options),
        set_id_(set_of_many(server, options.job_ids)),
        thread_([this] { run(); }) {}

  ~EventReader() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (call_ != nullptr) call_->TryCancel();
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Waits at most `limit` for an event and returns all queued items in order.
  std::deque<Item> take(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return !items_.empty() || interrupt::requested(); });
    return std::exchange(items_, {});
  }

  void wake() { changed_.notify_all(); }

 private:
  void push(Item item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    changed_.notify_all();
  }

  bool begin_call(grpc::ClientContext& context) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    call_ = &context;
    return true;
  }
  bool end_call() {
    const std::lock_guard lock(mutex_);
    call_ = nullptr;
    return !stopping_;
  }
  bool pause(double seconds) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                              [&] { return stopping_; });
  }

  void run() {
    std::string token;
    Clock::time_point last_contact = Clock::now();
    bool away = false;
    double delay_s = 0.2;
    while (true) {
      grpc::ClientContext context;
      if (!begin_call(context)) return;
      v1::WatchJobsRequest request;
      if (set_id_.empty())
        for (const std::string& id : options_.job_ids) request.mutable_filter()->add_job_ids(id);
      request.mutable_filter()->set_job_set_id(set_id_);
      request.set_include_progress(true);
      request.set_resume_token(token);
      request.set_snapshot(token.empty());
      const auto reader = stub_.WatchJobs(&context, request);
      v1::WatchEvent event;
      while (reader->Read(&event)) {
        last_contact = Clock::now();
        delay_s = 0.2;
        if (std::exchange(away, false)) push({Item::What::kBack, {}, {}});
        if (!event.resume_token().empty()) token = event.resume_token();
        push({Item::What::kEvent, event, {}});
      }
      const grpc::Status status = reader->Finish();
      if (!end_call()) return;

      const std::string why = wire::reason_of(status);
      if (!token.empty() &&
          (why == wire::reason::kResumeTokenExpired || why == wire::reason::kResumeTokenInvalid)) {
        token.clear();  // begin again with snapshots
        continue;
      }
      // A stream that ends without an error was ended by a server that is stopping.
      // The next call carries the newest token of its source.
      const bool renews = wire::token_ran_out(status);
      if (!status.ok() && !is_transient(status) && !renews)
        return push({Item::What::kFailed, {}, status});
      if (seconds_since(last_contact) > options_.patience_s)
        return push({Item::What::kFailed, {}, status});
      if (!renews && !std::exchange(away, true)) push({Item::What::kAway, {}, status});
      if (const auto asked = wire::parse_details(status).retry_after)
        delay_s = std::max(delay_s, static_cast<double>(asked->count()) / 1e3);
      if (!pause(delay_s)) return;
      delay_s = std::min(2.0 * delay_s, 2.0);
    }
  }

  v1::JobService::Stub& stub_;
  const FollowOptions& options_;
  const std::string set_id_;  ///< of more jobs than a filter names
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  grpc::ClientContext* call_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;  // last, because it uses all members above
};

/// Applies an event to the known jobs. @return true for the bookmark after the snapshots.
bool take_in(const v1::WatchEvent& event, std::map<std::string, v1::Job>& jobs) {
  if (event.body_case() == v1::WatchEvent::kBookmark) return true;
  v1::Job& job = jobs[event.job_id()];
  switch (event.body_case()) {
    case v1::WatchEvent::kSnapshot:
      job = event.snapshot();
      break;
    case v1::WatchEvent::kStateChanged: {
      const v1::StateChanged& change = event.state_changed();
      job.set_id(event.job_id());
      job.set_state(change.to());
      if (change.has_failure())
        *job.mutable_failure() = change.failure();
      else
        job.clear_failure();
      if (change.attempt() > 0) job.set_attempts(change.attempt());
      if (change.to() != v1::JOB_STATE_RUNNING) job.clear_progress();
      if (change.to() == v1::JOB_STATE_RUNNING && !job.has_started())
        *job.mutable_started() = event.time();
      if (is_final(change.to())) *job.mutable_ended() = event.time();
      break;
    }
    case v1::WatchEvent::kProgress:
      *job.mutable_progress() = event.progress();
      break;
    case v1::WatchEvent::kLogGrown:
      job.set_log_bytes(event.log_grown().log_bytes());
      break;
    case v1::WatchEvent::kPriority:
      job.set_priority(event.priority().to());
      break;
    case v1::WatchEvent::kCheckpoint:
      *job.mutable_checkpoint() = event.checkpoint();
      break;
    default:
      break;
  }
  return false;
}

bool reached(const FollowOptions& options, const std::map<std::string, v1::Job>& jobs) {
  std::size_t ended = 0;
  for (const std::string& id : options.job_ids) {
    const auto job = jobs.find(id);
    if (job != jobs.end() && is_final(job->second.state())) ++ended;
  }
  return options.until == Until::kAny ? ended > 0 : ended == options.job_ids.size();
}

}  // namespace

FollowEnd follow(Connection& server, const FollowOptions& options,
                 std::map<std::string, v1::Job>& jobs) {
  EventReader events(server, options);
  const interrupt::Scope wake([&events] { events.wake(); });
  const Clock::time_point start = Clock::now();
  while (true) {
    for (EventReader::Item& item : events.take(std::chrono::milliseconds(200))) {
      using What = EventReader::Item::What;
      if (item.what == What::kFailed) throw failure_of(item.status, server.address());
      if (item.what == What::kAway && options.on_away)
        options.on_away(failure_of(item.status, server.address()).what());
      if (item.what == What::kBack && options.on_back) options.on_back();
      if (item.what != What::kEvent) continue;
      const bool snapshots_done = take_in(item.event, jobs);
      if (snapshots_done)
        for (const std::string& id : options.job_ids)
          if (!jobs.contains(id))
            throw Failure(ExitStatus::kNotFound, "no job " + id, "see your jobs: quasi list");
      if (options.on_event) options.on_event(item.event);
    }
    if (interrupt::requested()) return FollowEnd::kInterrupted;
    if (reached(options, jobs)) return FollowEnd::kDone;
    if (options.limit_s && seconds_since(start) >= *options.limit_s) return FollowEnd::kTimedOut;
    if (options.on_tick) options.on_tick();
  }
}

}  // namespace quasi::client
