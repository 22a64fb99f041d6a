// The server of the simulated world: jobs, leases and fences exactly by the rules.

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "tests/service/support/worker_world.hpp"

namespace quasi::test {

using google::protobuf::util::TimeUtil;

grpc::Status WorkerWorld::refused(grpc::StatusCode code, std::string_view reason,
                                  std::map<std::string, std::string> metadata) {
  return wire::make_status(code, std::string(reason),
                           {.reason = std::string(reason), .metadata = std::move(metadata)});
}
grpc::Status WorkerWorld::fenced() {
  return refused(grpc::StatusCode::ABORTED, wire::reason::kFenced);
}

bool WorkerWorld::current(const v1::AttemptRef& ref, Job** found) {
  for (auto& [id, job] : jobs_)
    if (job.open && job.fence == ref.fence()) {
      *found = &job;
      return true;
    }
  return false;
}

bool WorkerWorld::stands(const v1::AttemptRef& ref, Job** found) {
  if (current(ref, found)) return true;
  // An expired attempt is reinstated if its job was not granted again.
  for (auto& [id, job] : jobs_)
    if (job.fence == ref.fence() && job.state == JobState::kQueued &&
        expired_.contains(ref.fence())) {
      *found = &job;
      return true;
    }
  return false;
}

void WorkerWorld::reopen(Job& job, const std::string& incarnation) {
  if (!job.open) {
    job.open = true;
    job.state = JobState::kRunning;
    expired_.erase(job.fence);
  }
  leases_[job.fence] = clock.now() + lease_ttl;
  lease_incarnation_[job.fence] = incarnation;
}

void WorkerWorld::requeue(Job& job) {
  job.open = false;
  leases_.erase(job.fence);
  job.state = job.state == JobState::kCancelling ? JobState::kCancelled : JobState::kQueued;
}

void WorkerWorld::expire() {
  for (auto& [id, job] : jobs_) {
    const auto lease = leases_.find(job.fence);
    if (!job.open || lease == leases_.end() || clock.now() < lease->second) continue;
    requeue(job);
    expired_.insert(job.fence);
    job.requeue_at = clock.now() + Milliseconds(500);
  }
}

void WorkerWorld::grant(const v1::AcquireLeasesRequest& request,
                        v1::AcquireLeasesResponse& response) {
  told_time_left.reset();
  if (request.has_time_left())
    told_time_left = Milliseconds(TimeUtil::DurationToMilliseconds(request.time_left()));
  std::vector<Job*> given;
  if (const auto before = acquires_.find(request.acquire_id()); before != acquires_.end()) {
    for (auto& [id, job] : jobs_)
      for (const auto fence : before->second)
        if (job.open && job.fence == fence) given.push_back(&job);
  } else {
    for (auto& [id, job] : jobs_) {
      if (static_cast<int>(given.size()) >= request.slots_size()) break;
      if (job.state != JobState::kQueued || clock.now() < job.requeue_at) continue;
      job.fence = next_fence_++;
      job.open = true;
      job.state = JobState::kLeased;
      ++job.grants;
      leases_[job.fence] = clock.now() + lease_ttl;
      lease_incarnation_[job.fence] = request.incarnation();
      acquires_[request.acquire_id()].push_back(job.fence);
      given.push_back(&job);
    }
  }
  for (const Job* job : given) {
    auto* grant = response.add_grants();
    grant->set_job_id(job->id);
    grant->mutable_attempt()->set_fence(job->fence);
    grant->mutable_attempt()->set_attempt_id("a_" + std::to_string(job->fence));
    grant->set_attempt_number(static_cast<std::uint32_t>(job->grants));
    grant->add_device_ids("cpu");
    grant->mutable_spec()->mutable_test()->mutable_noop();
    if (!job->input.empty()) {
      auto* input = grant->mutable_spec()->add_inputs();
      input->set_slot("deck");
      input->set_digest(wire::sha256_hex(job->input));
      input->set_size_bytes(job->input.size());
    }
    if (job->checkpoint.sequence() > 0) *grant->mutable_checkpoint() = job->checkpoint;
  }
}

grpc::Status WorkerWorld::complete(const v1::CompleteAttemptRequest& request) {
  Job* job = nullptr;
  const std::string content = request.SerializeAsString();
  if (!current(request.attempt(), &job)) {
    const auto before = completed_.find(request.attempt().fence());
    if (before != completed_.end() && before->second == content) return grpc::Status::OK;
    return fenced();
  }
  if (request.has_cancelled() && job->state != JobState::kCancelling)
    return refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kWrongState);
  if (request.has_succeeded()) {
    for (const auto& artifact : request.succeeded().artifacts())
      if (!blobs_.contains(artifact.digest()))
        return refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kInputsMissing);
    if (job->state == JobState::kLeased)
      return refused(grpc::StatusCode::FAILED_PRECONDITION, wire::reason::kWrongState);
  }
  completed_[request.attempt().fence()] = content;
  job->open = false;
  leases_.erase(job->fence);
  if (job->state == JobState::kCancelling) {
    job->state = JobState::kCancelled;
  } else if (request.has_succeeded()) {
    job->state = JobState::kSucceeded;
    ++job->successes;
    job->artifacts.assign(request.succeeded().artifacts().begin(),
                          request.succeeded().artifacts().end());
  } else {
    job->reason = request.failed().reason();
    const bool again =
        (job->reason == v1::FAILURE_REASON_CHILD_CRASHED ||
         job->reason == v1::FAILURE_REASON_STORAGE || job->reason == v1::FAILURE_REASON_PROTOCOL) &&
        job->grants < 3;
    job->state = again ? JobState::kQueued : JobState::kFailed;
  }
  return grpc::Status::OK;
}

grpc::Status WorkerWorld::take_connection() {
  if (dying_connections.empty()) return grpc::Status::OK;
  const grpc::StatusCode code = dying_connections.front();
  dying_connections.pop_front();
  return {code, "the stream was reset"};  // without details, which only a server sends
}

std::optional<MonotonicTime> WorkerWorld::next_server_event() const {
  std::optional<MonotonicTime> next;
  const auto consider = [&](MonotonicTime time) {
    if (time > clock.now()) next = next ? std::min(*next, time) : time;
  };
  for (const auto& [fence, until] : leases_) consider(until);
  for (const auto& [id, job] : jobs_)
    if (job.state == JobState::kQueued) consider(job.requeue_at);
  return next;
}

}  // namespace quasi::test
