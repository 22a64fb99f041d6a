// Begin here: server/queue/orders holds the rules on orders of operators, which take workers and
// devices out of service and preempt jobs.

#include <algorithm>

#include "server/queue/queue_core.hpp"
#include "server/queue/turns/change_checks.hpp"

namespace quasi::server {
namespace {

/// Finds a worker by its id, or by a name that no other worker has.
/// @throws Refused NOT_FOUND / WORKER, or FAILED_PRECONDITION for an ambiguous name
WorkerRow require_worker(Store& store, const std::string& id_or_name) {
  std::vector<WorkerRow> named;
  for (WorkerRow& worker : store.workers()) {
    if (worker.id == id_or_name) return worker;
    if (worker.name == id_or_name) named.push_back(std::move(worker));
  }
  if (named.empty())
    throw Refused(Refusal::kNotFound, "WORKER",
                  "worker: no worker has the id or the name " + id_or_name +
                      "; quasi devices -o wide lists the workers");
  if (named.size() > 1)
    throw Refused(Refusal::kFailedPrecondition, "WRONG_STATE",
                  "worker: " + std::to_string(named.size()) + " workers have the name " +
                      id_or_name + "; name one by its id, which quasi devices -o wide lists");
  return named.front();
}

void require_device(const WorkerRow& worker, const std::string& device_id) {
  const bool known = std::any_of(worker.devices.begin(), worker.devices.end(),
                                 [&](const DeviceRow& device) { return device.id == device_id; });
  if (!known)
    throw Refused(Refusal::kNotFound, "DEVICE",
                  "device: worker " + worker.name + " has no device " + device_id +
                      "; quasi devices -o wide lists its devices");
}

bool holds(const AttemptRow& attempt, const std::string& device_id) {
  const auto& ids = attempt.device_ids;
  return device_id.empty() || std::find(ids.begin(), ids.end(), device_id) != ids.end();
}

}  // namespace

std::string QueueCore::order_to_leave(const JobRow& job, const AttemptRow& attempt, Now now) const {
  if (!attempt.preempted.empty()) return attempt.preempted;
  const std::int64_t begin_ms = attempt.started_ms > 0 ? attempt.started_ms : now.wall_ms;
  for (const ServiceOrder& order : fleet_.orders_of(attempt.worker_id))
    if (order.evicts && holds(attempt, order.device_id) &&
        begin_ms + job.max_runtime_ms > order.until_ms)
      return sentence_of(order);
  return {};
}

Directive QueueCore::directive_for(const Held& held, Now now) {
  if (held.job.state == JobState::kCancelling) return Directive::kCancel;
  if (!order_to_leave(held.job, held.attempt, now).empty()) return Directive::kDrain;
  // An attempt that may go on while its device leaves service secures its work once.
  for (const ServiceOrder& order : fleet_.orders_of(held.attempt.worker_id))
    if (holds(held.attempt, order.device_id) && held.attempt.started_ms > 0 &&
        told_to_checkpoint_.insert(held.attempt.fence).second)
      return Directive::kCheckpointNow;
  return Directive::kContinue;
}

ServiceOrdered QueueCore::apply(const OrderService& command, Now now) {
  const WorkerRow worker = require_worker(store_, command.order.worker_id);
  ServiceOrder order = command.order;
  order.worker_id = worker.id;
  if (!order.device_id.empty()) require_device(worker, order.device_id);
  if (command.end)
    store_.end_service_order(order.worker_id, order.device_id);
  else
    store_.save_service_order(order);
  ServiceOrdered ordered{.worker_id = worker.id};
  std::vector<std::pair<JobRow, AttemptRow>> held;
  for (const AttemptRow& attempt : store_.open_attempts_of(worker.id))
    if (holds(attempt, order.device_id)) held.emplace_back(*store_.job(attempt.job_id), attempt);
  fleet_.set_orders(store_.service_orders());
  for (const auto& [job, attempt] : held)
    ++(order_to_leave(job, attempt, now).empty() ? ordered.staying : ordered.leaving);
  became_ready_ = became_ready_ || command.end;
  return ordered;
}

Preempted QueueCore::apply(const PreemptJobs& command, Now now) {
  const std::string request = request_key(command.scope, command.request_id);
  if (replay(store_, request, "PreemptJobs", command.body_sha256)) return {.replayed = true};
  for (const std::string& uid : command.uids) {
    const auto job = store_.find_job(command.scope, uid);
    if (!job) throw Refused(Refusal::kNotFound, "JOB", "there is no job " + uid);
    require_owner(command.scope, *job);
    if (job->state != JobState::kLeased && job->state != JobState::kRunning)
      throw wrong_state(*job, "only jobs that a worker has are preempted");
    AttemptRow attempt = *store_.attempt(*job->open_attempt);
    if (!attempt.preempted.empty()) continue;
    attempt.preempted =
        "preempted by " + command.by + (command.reason.empty() ? "" : ": " + command.reason);
    store_.update_attempt(attempt);
  }
  if (!request.empty())
    store_.save_request(
        request, {.method = "PreemptJobs", .body_sha256 = command.body_sha256, .response = {}},
        now.wall_ms + options_.request_ttl_ms);
  return {};
}

}  // namespace quasi::server
