#include "client/session/waiting.hpp"

#include <algorithm>

#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

constexpr double kPatience_s = 2.0;

std::string pool_of(const v1::Job& job) {
  const std::string& pool = job.spec().resources().pool();
  return pool.empty() ? "default" : pool;
}

/// The first rule of the server that no worker meets at present; "" if some worker fits.
std::string unmet_rule(Session& session, const v1::Job& job) {
  v1::ValidateJobsRequest request;
  *request.add_jobs() = job.spec();
  request.mutable_jobs(0)->clear_not_before();
  v1::ValidateJobsResponse response;
  const grpc::Status status =
      session.server.try_call(&Jobs::ValidateJobs, request, response, kPatience_s);
  return status.ok() && response.warnings_size() > 0 ? response.warnings(0).message() : "";
}

/// True if `other` starts before `job`: by priority, then in the order of submission.
bool is_ahead(const v1::Job& other, const v1::Job& job) {
  if (other.id() == job.id() || pool_of(other) != pool_of(job)) return false;
  if (other.priority() != job.priority()) return other.priority() > job.priority();
  const std::int64_t theirs = unix_ms(other.created()), ours = unix_ms(job.created());
  return theirs != ours ? theirs < ours : other.id() < job.id();
}

/// The number of queued jobs that start before this one, as far as the first 1,000 tell.
std::int64_t jobs_ahead(Session& session, const v1::Job& job) {
  v1::ListJobsRequest request;
  request.mutable_filter()->add_states(v1::JOB_STATE_QUEUED);
  request.set_page_size(1000);
  request.set_order(v1::ListJobsRequest::ORDER_CREATED_ASCENDING);
  v1::ListJobsResponse response;
  if (!session.server.try_call(&Jobs::ListJobs, request, response, kPatience_s).ok()) return 0;
  return std::count_if(response.jobs().begin(), response.jobs().end(),
                       [&](const v1::Job& other) { return is_ahead(other, job); });
}

bool knows_kind(const v1::Worker& worker, const std::string& kind) {
  return std::find(worker.kinds().begin(), worker.kinds().end(), kind) != worker.kinds().end();
}

}  // namespace

std::string absent_workers(Session& session, const v1::Job& job) {
  v1::ListPoolsResponse response;
  const grpc::Status status =
      session.server.try_call(&Jobs::ListPools, v1::ListPoolsRequest(), response, kPatience_s);
  if (!status.ok()) return "";
  const v1::Worker* newest = nullptr;
  for (const v1::Pool& pool : response.pools()) {
    if (pool.name() != pool_of(job)) continue;
    for (const v1::Worker& worker : pool.workers()) {
      if (!knows_kind(worker, job.kind())) continue;
      if (worker.state() == v1::WORKER_STATE_ONLINE) return "";
      if (newest == nullptr || unix_ms(newest->last_seen()) < unix_ms(worker.last_seen()))
        newest = &worker;
    }
  }
  const std::string pool = "no worker of pool " + printable(pool_of(job));
  if (newest == nullptr) return pool + " has run jobs of kind " + printable(job.kind()) + " yet";
  const std::string name = "'" + printable(newest->name()) + "'";
  if (newest->state() == v1::WORKER_STATE_DRAINING)
    return pool + " takes jobs; " + name + " ends its work";
  return pool + " answers; " + name + " was last seen at " +
         local_time(unix_ms(newest->last_seen()));
}

std::string waiting_reason(Session& session, const v1::Job& job) {
  if (job.state() != v1::JOB_STATE_QUEUED) return "";
  if (job.has_not_before() && unix_ms(job.not_before()) > now_unix_ms())
    return "it does not start before " + local_time(unix_ms(job.not_before()));
  if (const std::string rule = unmet_rule(session, job); !rule.empty()) return rule;
  if (const std::string absent = absent_workers(session, job); !absent.empty()) return absent;
  const std::int64_t ahead = jobs_ahead(session, job);
  if (ahead > 0)
    return std::to_string(ahead) + (ahead == 1 ? " job is" : " jobs are") + " ahead of it";
  return "it is the next; no fitting slot is free";
}

}  // namespace quasi::client
