// Begin here: the calls by which operators take workers and devices out of service and preempt
// jobs.

#include "server/api/access/act.hpp"
#include "server/api/access/admin_service.hpp"
#include "server/api/calls.hpp"

namespace quasi::server {
namespace {

/// Runs a call that orders a worker or a device out of service or back, and records it.
template <class Request, class Response, class Fill>
grpc::ServerUnaryReactor* order_call(Services& services, grpc::CallbackServerContext* context,
                                     const Request* request, Response* response, const char* method,
                                     Fill fill) {
  auto act = std::make_shared<Act>(*context, "admin", method);
  return write_call(
      services, context, violations_of(*request), method,
      [=](WriteContext& write, const Caller& caller) {
        OrderService command{
            .order = {.worker_id = request->worker(),
                      .until_ms = write.now.wall_ms + to_milliseconds(request->within()),
                      .since_ms = write.now.wall_ms,
                      .by = caller.name,
                      .reason = request->reason()},
            .end = request->end()};
        fill(command.order);
        const ServiceOrdered ordered = write.queue.apply(command, write.now);
        response->set_worker_id(ordered.worker_id);
        response->set_jobs_staying(static_cast<std::uint32_t>(ordered.staying));
        response->set_jobs_leaving(static_cast<std::uint32_t>(ordered.leaving));
        std::vector<std::string> names{ordered.worker_id};
        if (!command.order.device_id.empty()) names.push_back(command.order.device_id);
        act->record(
            write, caller.name,
            {.names = std::move(names),
             .detail = command.end
                           ? "end"
                           : std::string(command.order.evicts ? "evict" : "keep") + " within_ms=" +
                                 std::to_string(to_milliseconds(request->within())) +
                                 " reason=" + request->reason()});
      },
      {.committed = [act] { act->log_committed(); }});
}

}  // namespace

grpc::ServerUnaryReactor* AdminServiceApi::DrainWorker(grpc::CallbackServerContext* context,
                                                       const v1::DrainWorkerRequest* request,
                                                       v1::DrainWorkerResponse* response) {
  return order_call(services_, context, request, response, "DrainWorker",
                    [](ServiceOrder& order) { order.evicts = true; });
}

grpc::ServerUnaryReactor* AdminServiceApi::CordonDevice(grpc::CallbackServerContext* context,
                                                        const v1::CordonDeviceRequest* request,
                                                        v1::CordonDeviceResponse* response) {
  return order_call(services_, context, request, response, "CordonDevice",
                    [request](ServiceOrder& order) {
                      order.device_id = request->device();
                      order.evicts = request->evict();
                    });
}

grpc::ServerUnaryReactor* AdminServiceApi::PreemptJobs(grpc::CallbackServerContext* context,
                                                       const v1::PreemptJobsRequest* request,
                                                       v1::PreemptJobsResponse*) {
  const wire::Violations violations = violations_of(*request);
  const std::string digest = violations.empty() ? body_digest(*request) : "";
  return jobs_call(services_, context, violations, {"preempt", "PreemptJobs"},
                   [request, digest](WriteContext& write, const Caller& caller) {
                     server::PreemptJobs command{
                         .scope = scope_of(caller),
                         .request_id = request->request_id(),
                         .body_sha256 = digest,
                         .uids = {request->job_ids().begin(), request->job_ids().end()},
                         .by = caller.name,
                         .reason = request->reason()};
                     const bool replayed = write.queue.apply(command, write.now).replayed;
                     return JobsChanged{.uids = command.uids, .replayed = replayed};
                   });
}

}  // namespace quasi::server
