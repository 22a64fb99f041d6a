// Begin here: the calls of JobService that change the turns of jobs.

#include "server/api/access/act.hpp"
#include "server/api/job_service.hpp"

namespace quasi::server {
namespace {

/// The command of a request, as far as the requests are alike.
template <class Request>
ChangeTurns change_of(const Request& request, const Caller& caller, ChangeTurns::Act act) {
  return {.scope = scope_of(caller),
          .request_id = request.request_id(),
          .body_sha256 = body_digest(request),
          .uids = {request.job_ids().begin(), request.job_ids().end()},
          .act = act,
          .reason = {}};
}

/// Applies the command and writes its answer.
template <class Response>
JobsChanged change_turns(WriteContext& write, const ChangeTurns& command, Response& response) {
  const TurnsChanged changed = write.queue.apply(command, write.now);
  for (std::size_t i = 0; i < command.uids.size(); ++i) {
    v1::JobTurn& job = *response.add_jobs();
    job.set_job_id(command.uids[i]);
    job.set_state(static_cast<v1::JobState>(changed.jobs[i].state));
    job.set_priority(changed.jobs[i].priority);
  }
  return {.uids = command.uids, .replayed = changed.replayed};
}

}  // namespace

grpc::ServerUnaryReactor* JobServiceApi::HoldJobs(grpc::CallbackServerContext* context,
                                                  const v1::HoldJobsRequest* request,
                                                  v1::HoldJobsResponse* response) {
  return jobs_call(services_, context, violations_of(*request), {"hold", "HoldJobs"},
                   [request, response](WriteContext& write, const Caller& caller) {
                     auto command = change_of(*request, caller, ChangeTurns::Act::kHold);
                     command.reason = request->reason();
                     return change_turns(write, command, *response);
                   });
}

grpc::ServerUnaryReactor* JobServiceApi::ReleaseJobs(grpc::CallbackServerContext* context,
                                                     const v1::ReleaseJobsRequest* request,
                                                     v1::ReleaseJobsResponse* response) {
  return jobs_call(services_, context, violations_of(*request), {"release", "ReleaseJobs"},
                   [request, response](WriteContext& write, const Caller& caller) {
                     auto command = change_of(*request, caller, ChangeTurns::Act::kRelease);
                     command.reason = request->reason();
                     return change_turns(write, command, *response);
                   });
}

grpc::ServerUnaryReactor* JobServiceApi::ReprioritiseJobs(
    grpc::CallbackServerContext* context, const v1::ReprioritiseJobsRequest* request,
    v1::ReprioritiseJobsResponse* response) {
  return jobs_call(services_, context, violations_of(*request),
                   {"reprioritise", "ReprioritiseJobs"},
                   [request, response](WriteContext& write, const Caller& caller) {
                     auto command = change_of(*request, caller, ChangeTurns::Act::kReprioritise);
                     command.priority = request->priority();
                     command.may_raise = caller.role >= Role::kOperator;
                     return change_turns(write, command, *response);
                   });
}

}  // namespace quasi::server
