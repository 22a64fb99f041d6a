// WatchJobs is a cursor over the table of events.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "server/access/sealed.hpp"
#include "server/api/convert.hpp"
#include "server/api/job_service.hpp"
#include "server/api/streams/pumped_stream.hpp"
#include "server/api/streams/snapshot_ranges.hpp"

namespace quasi::server {
namespace {

constexpr std::int32_t kPageEvents = 256;
constexpr std::int32_t kPageSnapshots = 64;
constexpr std::size_t kPageBytes = 1U << 20;

/// A text for each set of rights. It is no beginning of another one.
std::string rights_of(const Scope& scope) {
  if (scope.is_everything) return "everything ";
  return std::to_string(scope.principal_id) + " " + std::to_string(scope.tenant.size()) + " " +
         scope.tenant;
}

class WatchStream : public PumpedStream<v1::WatchEvent> {
 public:
  WatchStream(Services& services, grpc::CallbackServerContext* context,
              const v1::WatchJobsRequest& request, JobQuery query, const Admission& admission)
      : PumpedStream(services, context, admission),
        query_(std::move(query)),
        binding_(canonical_bytes(request.filter()) +
                 (request.include_progress() ? "/progress" : "/states")),
        feed_(rights_of(scope_) + binding_),
        include_progress_(request.include_progress()),
        resume_token_(request.resume_token()),
        phase_(request.snapshot() ? Phase::kSnapshot : Phase::kEvents) {}

  bool counted = false;

 protected:
  const char* method() const override { return "WatchJobs"; }

  Next fill(ReadStore& store, Page& page, grpc::Status&) override {
    if (!begun_) begin(store);
    if (phase_ == Phase::kSnapshot) return fill_snapshots(store, page);
    auto& pages = services_.event_pages;
    auto events = pages.find(feed_, cursor_, services_.clock.now().monotonic_ms);
    if (!events) {
      events = read_events(store);
      if (!events->entries.empty()) pages.keep(feed_, events, services_.clock.now().monotonic_ms);
    }
    for (const RowId job : events->foreign) remember(job, "");
    for (const EventPage::Entry& entry : events->entries) {
      const auto seq = static_cast<std::int64_t>(entry.message.seq());
      const bool is_shown = entry.message.job_seq() > 0 && shown_.include(entry.job, seq);
      if (seq > cursor_ && !is_shown) page.emplace_back(events, &entry.message);
    }
    const bool has_moved = std::exchange(cursor_, events->last) < events->last;
    if (cursor_ >= snapshot_end_) shown_.clear();  // later events are in no snapshot
    if (!page.empty()) {
      last_sent_ms_ = services_.clock.now().monotonic_ms;
      return Next::kWrite;
    }
    if (has_moved) return Next::kAgain;
    if (services_.clock.now().monotonic_ms - last_sent_ms_ >= services_.options.bookmark_ms) {
      page.push_back(std::make_shared<v1::WatchEvent>(bookmark()));
      return Next::kWrite;
    }
    return Next::kIdle;
  }

  bool tick_due(std::int64_t monotonic_ms) override {
    return monotonic_ms - last_sent_ms_ >= services_.options.bookmark_ms;
  }

  /// Skips commits about jobs that the filter is known not to select. Such a watch moves its token
  /// forward with the next bookmark.
  bool is_concerned(const GroupOutcome& outcome) const override {
    return std::any_of(outcome.changes.begin(), outcome.changes.end(),
                       [this](const Change& change) {
                         if (!change.event) return false;
                         if (*change.event == EventType::kProgress && !include_progress_)
                           return false;
                         if (!query_.uids.empty() && !named_.contains(change.job)) return false;
                         const auto known = matches_.find(change.job);
                         return known == matches_.end() || !known->second.empty();
                       });
  }

  void on_done() override {
    if (counted) --services_.watches;
  }

 private:
  enum class Phase { kSnapshot, kEvents };

  void begin(ReadStore& store) {
    begun_ = true;
    last_sent_ms_ = services_.clock.now().monotonic_ms;
    cursor_ = store.newest_event();
    if (!resume_token_.empty()) {
      const auto payload = open_token(services_.token_key, "watch", binding_, resume_token_);
      if (!payload)
        throw Refused(Refusal::kInvalidArgument, wire::reason::kResumeTokenInvalid,
                      "resume_token: was not given out for this filter; begin with a snapshot");
      const std::int64_t seq = std::stoll(*payload);
      const std::size_t slash = payload->find('/');
      const std::string line = slash == std::string::npos ? "" : payload->substr(slash + 1);
      if (seq > cursor_ || !services_.event_lines.hold(line, seq))
        throw Refused(Refusal::kOutOfRange, wire::reason::kResumeTokenExpired,
                      "the token belongs to events that this store does not hold, because it was "
                      "restored from an older copy; begin with a snapshot");
      cursor_ = seq;
    }
    last_job_ = store.newest_job();
    for (const std::string& uid : query_.uids)
      if (const auto job = store.job_id_of(scope_, uid)) named_.insert(*job);
    snapshot_end_ = phase_ == Phase::kSnapshot ? -1 : 0;
  }

  /// Sends the jobs in the order of submission, up to the newest job at the beginning. Later jobs
  /// arrive as events. A page may show a newer state than `cursor_`; events that it already
  /// includes are skipped.
  Next fill_snapshots(ReadStore& store, Page& page) {
    // One transaction: the page includes exactly the events up to the newest one.
    const ReadStore::Transaction moment(store);
    const std::int64_t newest_event = store.newest_event();
    const auto views = store.list(
        scope_, query_,
        {.order = ReadStore::Order::kAscending, .cursor = last_shown_, .limit = kPageSnapshots});
    bool over = views.empty();
    for (const JobView& view : views) {
      if (view.row.id > last_job_) {
        over = true;
        break;
      }
      last_shown_ = view.row.id;
      v1::WatchEvent event;
      event.set_job_id(view.row.uid);
      event.set_job_seq(static_cast<std::uint64_t>(view.row.job_seq));
      *event.mutable_time() = to_timestamp(services_.clock.now().wall_ms);
      *event.mutable_snapshot() = to_job(view);
      page.push_back(std::make_shared<v1::WatchEvent>(std::move(event)));
    }
    if (!shown_.add(over ? last_job_ : last_shown_, newest_event))
      throw Refused(Refusal::kResourceExhausted, wire::reason::kRateLimited,
                    "more jobs changed during the snapshot than a watch can follow; narrow its "
                    "filter, e.g. by a label, or watch without a snapshot");
    if (over) {
      phase_ = Phase::kEvents;
      snapshot_end_ = newest_event;
      page.push_back(std::make_shared<v1::WatchEvent>(bookmark()));
    }
    last_sent_ms_ = services_.clock.now().monotonic_ms;
    return Next::kWrite;
  }

  /// Reads the events after the cursor as every watcher of this feed sees them.
  std::shared_ptr<const EventPage> read_events(ReadStore& store) {
    auto page = std::make_shared<EventPage>();
    page->after = page->last = cursor_;
    for (const EventRow& event : store.events_after(cursor_, kPageEvents)) {
      page->last = event.seq;
      if (event.type == EventType::kProgress && !include_progress_) continue;
      const std::string& uid = selected_uid(store, event.job_id);
      if (uid.empty()) {
        page->foreign.push_back(event.job_id);
        continue;
      }
      EventPage::Entry entry{.job = event.job_id, .message = to_message(event, uid)};
      entry.message.set_resume_token(token(event.seq));
      page->bytes += entry.message.ByteSizeLong();
      page->entries.push_back(std::move(entry));
      if (page->bytes > kPageBytes) break;
    }
    return page;
  }

  /// The uid of the job if the filter selects it, else "". The filter depends only on properties
  /// that never change, so the newest 1,024 answers are kept.
  const std::string& selected_uid(ReadStore& store, RowId job) {
    const auto known = matches_.find(job);
    if (known != matches_.end()) return known->second;
    return remember(job, store.uid_if_matching(scope_, query_, job).value_or(""));
  }
  const std::string& remember(RowId job, std::string uid) {
    if (matches_.size() >= 1'024) matches_.clear();
    return matches_.insert_or_assign(job, std::move(uid)).first->second;
  }

  std::string token(std::int64_t seq) const {
    return seal_token(services_.token_key, "watch", binding_,
                      std::to_string(seq) + "/" + services_.event_lines.current());
  }

  v1::WatchEvent bookmark() {
    v1::WatchEvent event;
    event.set_seq(static_cast<std::uint64_t>(cursor_));
    *event.mutable_time() = to_timestamp(services_.clock.now().wall_ms);
    event.mutable_bookmark();
    event.set_resume_token(token(cursor_));
    last_sent_ms_ = services_.clock.now().monotonic_ms;
    return event;
  }

  const JobQuery query_;
  const std::string binding_;
  const std::string feed_;  ///< equal for watchers with the same filter and the same rights
  const bool include_progress_;
  const std::string resume_token_;
  Phase phase_;
  bool begun_ = false;
  std::int64_t cursor_ = 0;
  std::int64_t snapshot_end_ = 0;
  RowId last_job_ = 0;
  RowId last_shown_ = 0;
  SnapshotRanges shown_;
  std::set<RowId> named_;  ///< the jobs that the filter names
  std::map<RowId, std::string> matches_;
  std::atomic<std::int64_t> last_sent_ms_{0};
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchEvent>* watch_jobs(Services& services,
                                                     grpc::CallbackServerContext* context,
                                                     const v1::WatchJobsRequest& request,
                                                     const Admission& admission) {
  wire::Violations violations;
  wire::validate(request, violations);
  // Conversion is safe only after validation, because durations beyond the limits do not fit
  // milliseconds.
  const auto stream = std::make_shared<WatchStream>(
      services, context, request, violations.empty() ? to_query(request.filter()) : JobQuery{},
      admission);
  WatchStream* reactor = stream.get();
  if (!violations.empty()) {
    stream->refuse(to_status(violations));
  } else if (++services.watches > static_cast<int>(limits::kWatches)) {
    --services.watches;
    stream->refuse(to_status(
        Refused(Refusal::kResourceExhausted, wire::reason::kRateLimited,
                "the server has " + std::to_string(limits::kWatches) + " watchers; try again later")
            .retry_in(5'000)));
  } else {
    stream->counted = true;
    stream->start();
  }
  return reactor;
}

}  // namespace quasi::server
