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
  if (job.state() != v1::JOB_STATE_QUEUED && job.state() != v1::JOB_STATE_BLOCKED) return "";
  v1::ExplainJobRequest request;
  request.set_job_id(job.id());
  v1::ExplainJobResponse answer;
  if (!session.server.try_call(&Jobs::ExplainJob, request, answer, kPatience_s).ok()) return "";
  switch (answer.reason()) {
    case v1::WAIT_REASON_NOT_BEFORE:
      return "it does not start before " + local_time(unix_ms(answer.earliest_start()));
    case v1::WAIT_REASON_BACK_OFF:
      return printable(answer.message()) + " until " + local_time(unix_ms(answer.earliest_start()));
    case v1::WAIT_REASON_NO_WORKER:
      if (const std::string absent = absent_workers(session, job); !absent.empty()) return absent;
      return printable(answer.message());
    case v1::WAIT_REASON_BUSY:
    case v1::WAIT_REASON_BEHIND:
    case v1::WAIT_REASON_NOW:
      if (answer.position() > 1)
        return std::to_string(answer.position() - 1) +
               (answer.position() == 2 ? " job is" : " jobs are") + " ahead of it";
      return answer.reason() == v1::WAIT_REASON_BUSY ? "it is the next; no fitting slot is free"
                                                     : printable(answer.message());
    default:
      return printable(answer.message());
  }
}

}  // namespace quasi::client
