#pragma once

// The daemon's ways to the server of WorkerWorld: calls, transfers of blobs and background work.

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "tests/service/support/worker_world.hpp"
#include "workers/daemon/error.hpp"

namespace quasi::test {

inline grpc::Status unavailable() { return {grpc::StatusCode::UNAVAILABLE, "no connection"}; }

/// Runs background work as an event of the world.
class WorkerWorld::Later : public Background {
 public:
  explicit Later(WorkerWorld& world) : world_(world) {}
  void run(std::function<void()> work, std::function<void()> done) override {
    world_.events_.push_back([work, done] {
      work();
      done();
    });
  }

 private:
  WorkerWorld& world_;
};

/// Copies blobs between the files of the daemon and those of the server.
class WorkerWorld::Blobs : public BlobTransfer {
 public:
  explicit Blobs(WorkerWorld& world) : world_(world) {}
  grpc::Status download(const std::string& digest, std::uint64_t, const std::filesystem::path& to,
                        const std::atomic<bool>&) override {
    if (!world_.server_reachable) return unavailable();
    world_.points.pass();
    const auto blob = world_.blobs_.find(digest);
    if (blob == world_.blobs_.end())
      return refused(grpc::StatusCode::NOT_FOUND, wire::reason::kBlob);
    world_.files.write_file(to, blob->second);
    return grpc::Status::OK;
  }
  grpc::Status upload(const std::filesystem::path& from, const std::string& digest, std::uint64_t,
                      const std::atomic<bool>&) override {
    if (!world_.server_reachable) return unavailable();
    if (const auto died = world_.take_connection(); !died.ok()) return died;
    world_.points.pass();
    const auto bytes = world_.files.read_file(from);
    if (!bytes) return refused(grpc::StatusCode::UNKNOWN, "LOCAL_FILE");
    if (wire::sha256_hex(*bytes) != digest)
      world_.violations.push_back("'" + from.string() + "' was uploaded under another's digest");
    world_.blobs_[digest] = *bytes;
    world_.points.pass();
    return grpc::Status::OK;
  }

 private:
  WorkerWorld& world_;
};

/// The connection to the server of the world. It follows the lease rules literally: every call
/// about an attempt counts only under the current fence.
class WorkerWorld::Link : public ServerLink {
 public:
  explicit Link(WorkerWorld& world) : world_(world) {}

  void register_worker(const v1::RegisterRequest& request,
                       Then<v1::RegisterResponse> then) override {
    call<v1::RegisterResponse>(then, [this, request](v1::RegisterResponse& response) {
      *response.mutable_lease_ttl() =
          google::protobuf::util::TimeUtil::MillisecondsToDuration(world_.lease_ttl.count());
      std::set<std::uint64_t> salvaged;
      for (const auto& ref : request.salvage()) {
        Job* job = nullptr;
        auto* answer = response.add_salvage();
        answer->set_fence(ref.fence());
        answer->set_directive(v1::DIRECTIVE_FENCED);
        if (!world_.stands(ref, &job)) continue;
        salvaged.insert(ref.fence());
        world_.reopen(*job, request.incarnation());
        answer->set_directive(job->state == JobState::kCancelling ? v1::DIRECTIVE_CANCEL
                                                                  : v1::DIRECTIVE_CONTINUE);
      }
      for (auto& [id, job] : world_.jobs_)
        if (job.open && !salvaged.contains(job.fence) &&
            world_.lease_incarnation_[job.fence] != request.incarnation())
          world_.requeue(job);
      return grpc::Status::OK;
    });
  }

  void acquire(const v1::AcquireLeasesRequest& request,
               Then<v1::AcquireLeasesResponse> then) override {
    poll_ = {request, then};
    answer_poll();
  }
  void cancel_acquire() override {
    if (!poll_.then) return;
    auto then = std::exchange(poll_.then, nullptr);
    world_.events_.push_back([then] {
      then({grpc::StatusCode::CANCELLED, "cancelled"}, v1::AcquireLeasesResponse());
    });
  }
  /// Answers the open poll if there is something to grant.
  void answer_poll() {
    if (!poll_.then || answering_) return;
    const auto known = world_.acquires_.find(poll_.request.acquire_id());
    const bool work = std::any_of(world_.jobs_.begin(), world_.jobs_.end(), [&](const auto& entry) {
      return entry.second.state == JobState::kQueued &&
             world_.clock.now() >= entry.second.requeue_at;
    });
    const bool at_once =
        google::protobuf::util::TimeUtil::DurationToMilliseconds(poll_.request.wait()) == 0;
    if (!work && known == world_.acquires_.end() && !at_once && world_.server_reachable) return;
    answering_ = true;
    const auto poll = std::exchange(poll_, {});
    call<v1::AcquireLeasesResponse>(
        [this, then = poll.then](const grpc::Status& status,
                                 const v1::AcquireLeasesResponse& response) {
          then(status, response);
        },
        [this, request = poll.request](v1::AcquireLeasesResponse& response) {
          answering_ = false;
          world_.grant(request, response);
          if (response.grants().empty() || !world_.lose_next_grants) return grpc::Status::OK;
          world_.lose_next_grants = false;
          response.Clear();
          return unavailable();
        },
        [this] { answering_ = false; });
  }

  void heartbeat(const v1::HeartbeatRequest& request, Milliseconds limit,
                 Then<v1::HeartbeatResponse> then) override {
    world_.heartbeat_limit = limit;
    world_.shown_state = request.devices(0).state();
    world_.shown_reason = request.devices(0).state_reason();
    call<v1::HeartbeatResponse>(then, [this, request](v1::HeartbeatResponse& response) {
      for (const auto& attempt : request.attempts()) {
        v1::AttemptRef ref;
        ref.set_fence(attempt.fence());
        Job* job = nullptr;
        auto* answer = response.add_attempts();
        answer->set_fence(attempt.fence());
        answer->set_directive(v1::DIRECTIVE_FENCED);
        if (!world_.stands(ref, &job)) continue;
        world_.reopen(*job, request.incarnation());
        answer->set_directive(job->state == JobState::kCancelling ? v1::DIRECTIVE_CANCEL
                                                                  : v1::DIRECTIVE_CONTINUE);
      }
      return grpc::Status::OK;
    });
  }

  void start_attempt(const v1::StartAttemptRequest& request,
                     Then<v1::StartAttemptResponse> then) override {
    call<v1::StartAttemptResponse>(then, [this, request](v1::StartAttemptResponse&) {
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      if (job->state == JobState::kLeased) job->state = JobState::kRunning;
      return job->state == JobState::kRunning
                 ? grpc::Status::OK
                 : refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kWrongState);
    });
  }

  void append_log(const v1::AppendLogRequest& request, Then<v1::AppendLogResponse> then) override {
    call<v1::AppendLogResponse>(then, [this, request](v1::AppendLogResponse& response) {
      if (const auto died = world_.take_connection(); !died.ok()) return died;
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      std::string& log = world_.logs_[job->fence];
      const std::size_t overlap =
          std::min(log.size(), static_cast<std::size_t>(request.offset())) == request.offset()
              ? log.size() - request.offset()
              : std::string::npos;
      if (overlap == std::string::npos ||
          log.compare(request.offset(), std::min(overlap, request.data().size()), request.data(), 0,
                      std::min(overlap, request.data().size())) != 0)
        return refused(grpc::StatusCode::ABORTED, wire::reason::kOffsetMismatch,
                       {{"length", std::to_string(log.size())}});
      if (request.data().size() > overlap) log += request.data().substr(overlap);
      job->log = log;
      response.set_length(log.size());
      return grpc::Status::OK;
    });
  }

  void record_checkpoint(const v1::RecordCheckpointRequest& request,
                         Then<v1::RecordCheckpointResponse> then) override {
    call<v1::RecordCheckpointResponse>(then, [this, request](v1::RecordCheckpointResponse&) {
      if (const auto died = world_.take_connection(); !died.ok()) return died;
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      v1::Checkpoint& newest = job->checkpoint;
      if (request.sequence() == newest.sequence() && request.digest() == newest.digest())
        return grpc::Status::OK;
      if (request.sequence() <= newest.sequence() || !world_.blobs_.contains(request.digest()))
        return refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kWrongState);
      newest.set_sequence(request.sequence());
      newest.set_step(request.step());
      newest.set_digest(request.digest());
      newest.set_size_bytes(request.size_bytes());
      return grpc::Status::OK;
    });
  }

  void complete(const v1::CompleteAttemptRequest& request,
                Then<v1::CompleteAttemptResponse> then) override {
    call<v1::CompleteAttemptResponse>(
        then, [this, request](v1::CompleteAttemptResponse&) { return world_.complete(request); });
  }

  void release(const v1::ReleaseLeaseRequest& request,
               Then<v1::ReleaseLeaseResponse> then) override {
    call<v1::ReleaseLeaseResponse>(then, [this, request](v1::ReleaseLeaseResponse&) {
      Job* job = nullptr;
      if (!world_.current(request.attempt(), &job)) return fenced();
      job->releases.push_back(request.reason());
      world_.requeue(*job);
      return grpc::Status::OK;
    });
  }

 private:
  /// Queues two events, each with a crash point before it: the server acts, and its answer arrives.
  template <typename Response, typename Handle>
  void call(Then<Response> then, Handle handle, std::function<void()> lost = {}) {
    world_.events_.push_back([this, then, handle, lost] {
      world_.points.pass();
      auto response = std::make_shared<Response>();
      const bool reachable = world_.server_reachable;
      if (!reachable && lost) lost();
      const grpc::Status status = reachable ? handle(*response) : unavailable();
      if (wire::reason_of(status) == wire::reason::kFenced) ++world_.fenced_answers;
      world_.events_.push_back([this, then, status, response] {
        world_.points.pass();
        then(status, *response);
      });
    });
  }
  struct Poll {
    v1::AcquireLeasesRequest request;
    Then<v1::AcquireLeasesResponse> then;
  };
  WorkerWorld& world_;
  Poll poll_;
  bool answering_ = false;
};

}  // namespace quasi::test
