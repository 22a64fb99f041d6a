#include "server/api/job_service.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "proto/wire/limits.hpp"
#include "server/access/sealed.hpp"
#include "server/api/access/act.hpp"
#include "server/api/access/job_rights.hpp"
#include "server/api/calls.hpp"
#include "server/api/convert.hpp"
#include "server/api/sweeps/job_parts.hpp"
#include "server/queue/schedulable.hpp"

namespace quasi::server {
namespace {

/// A page is limited by bytes too, because one specification may have 256 KiB and one message 4
/// MiB.
constexpr std::size_t kPageBytes = 3U << 20;

std::int32_t page_size(std::int32_t asked) {
  if (asked == 0) return static_cast<std::int32_t>(limits::kDefaultPageSize);
  return std::min(asked, static_cast<std::int32_t>(limits::kPageSize));
}

std::string page_payload(Services& services, std::string_view purpose, const std::string& binding,
                         const std::string& token) {
  const auto payload = open_token(services.token_key, purpose, binding, token);
  if (!payload)
    throw Refused(Refusal::kInvalidArgument, wire::reason::kPageTokenMismatch,
                  "page_token: was not given out for this query; begin at the first page");
  return *payload;
}

Refused no_such_job(const std::string& uid) {
  return Refused(Refusal::kNotFound, wire::reason::kJob, "there is no job " + uid);
}

void require_storage(const Services& services) {
  if (services.storage_low)
    throw Refused(Refusal::kResourceExhausted, wire::reason::kStorageLow,
                  "the server's disk is nearly full; running work continues, new work is refused")
        .retry_in(60'000);
}

/// A worker with its devices. A worker that is not a member of the fleet is lost, as its devices
/// are.
/// @param known   the stored row of the worker
/// @param member  its state in the fleet; null if it is not a member
v1::Worker to_message(const WorkerRow& known, const WorkerStatus* member) {
  const WorkerRow& row = member != nullptr ? member->worker : known;
  v1::Worker worker;
  worker.set_id(row.id);
  worker.set_name(row.name);
  worker.set_version(row.version);
  *worker.mutable_last_seen() = to_timestamp(row.last_seen_ms);
  for (const std::string& kind : row.kinds) worker.add_kinds(kind);
  const bool online = member != nullptr && member->online;
  worker.set_state(!online            ? v1::WORKER_STATE_LOST
                   : member->draining ? v1::WORKER_STATE_DRAINING
                                      : v1::WORKER_STATE_ONLINE);
  if (member != nullptr) {
    worker.set_state_reason(member->closed);
    for (const DeviceStatus& device : member->devices) *worker.add_devices() = to_message(device);
  } else {
    for (const DeviceRow& device : row.devices)
      *worker.add_devices() =
          to_message(DeviceStatus{.device = device, .state = DeviceState::kLost});
  }
  return worker;
}

/// Counts the slots that jobs hold on each device of a worker, and names the jobs.
void add_running_jobs(const std::vector<OpenSlot>& open, v1::Worker& worker) {
  for (v1::Device& device : *worker.mutable_devices()) {
    for (const OpenSlot& slot : open) {
      const auto& ids = slot.device_ids;
      if (slot.worker_id != worker.id() ||
          std::find(ids.begin(), ids.end(), device.id()) == ids.end())
        continue;
      device.set_busy_slots(device.busy_slots() + 1);
      if (!slot.job_uid.empty()) device.add_running_job_ids(slot.job_uid);
    }
  }
}

/// All pools with their workers and numbers of jobs. The fleet holds the workers that the queue
/// knows now; the store also holds earlier workers.
v1::ListPoolsResponse to_response(const Scope& scope, const std::vector<WorkerStatus>& fleet,
                                  ReadStore& store) {
  std::map<std::string, v1::Pool> pools;
  pools["default"];
  for (const PoolCount& count : store.pools()) {
    pools[count.pool].set_queued(static_cast<std::uint64_t>(count.queued));
    pools[count.pool].set_running(static_cast<std::uint64_t>(count.running));
  }
  const std::vector<OpenSlot> open = store.open_slots(scope);
  std::map<std::string, const WorkerStatus*> members;
  for (const WorkerStatus& status : fleet) members[status.worker.id] = &status;
  for (const WorkerRow& known : store.workers()) {
    const auto member = members.find(known.id);
    const WorkerStatus* status = member != members.end() ? member->second : nullptr;
    v1::Worker& worker = *pools[status != nullptr ? status->worker.pool : known.pool].add_workers();
    worker = to_message(known, status);
    add_running_jobs(open, worker);
  }
  v1::ListPoolsResponse response;
  for (auto& [name, pool] : pools) {
    pool.set_name(name);
    *response.add_pools() = std::move(pool);
  }
  return response;
}

}  // namespace

grpc::ServerUnaryReactor* JobServiceApi::GetCapabilities(grpc::CallbackServerContext* context,
                                                         const v1::GetCapabilitiesRequest* request,
                                                         v1::GetCapabilitiesResponse* response) {
  return read_call(services_, context, violations_of(*request), "GetCapabilities",
                   [this, response](ReadStore& store, const Caller& caller) {
                     response->set_principal(caller.name);
                     response->set_role(static_cast<v1::Role>(caller.role));
                     response->set_tenant(caller.tenant);
                     add_scopes(caller.scopes, *response->mutable_token_scopes());
                     response->set_server_version(QUASI_VERSION);
                     response->set_api_version("v1");
                     for (const std::string& kind : wire::all_kinds())
                       if (kind != "test" || services_.options.enable_test_work)
                         response->add_kinds(kind);
                     for (const limits::Limit& limit : limits::published())
                       (*response->mutable_limits())[std::string(limit.name)] = limit.value;
                     response->add_pools("default");
                     for (const WorkerRow& worker : store.workers()) {
                       const auto& pools = response->pools();
                       if (std::find(pools.begin(), pools.end(), worker.pool) == pools.end())
                         response->add_pools(worker.pool);
                     }
                     response->set_store_id(services_.store_id);
                   });
}

grpc::ServerUnaryReactor* JobServiceApi::SubmitJobs(grpc::CallbackServerContext* context,
                                                    const v1::SubmitJobsRequest* request,
                                                    v1::SubmitJobsResponse* response) {
  wire::Violations violations;
  wire::validate(*request, {.enable_test_work = services_.options.enable_test_work}, violations);
  auto command = std::make_shared<server::SubmitJobs>();
  if (violations.empty()) {
    command->request_id = request->request_id();
    command->body_sha256 = body_digest(*request);
    add_jobs(*request, *command);
  }
  return jobs_call(services_, context, violations,
                   {.event = "submit", .method = "SubmitJobs", .checks_first = true},
                   [this, request, command, response](WriteContext& write, const Caller& caller) {
                     require_storage(services_);
                     const std::string forbidden = forbidden_priority(specs_of(*request), caller);
                     if (!forbidden.empty())
                       throw Refused(Refusal::kPermissionDenied, wire::reason::kRoleRequired,
                                     forbidden);
                     command->scope = scope_of(caller);
                     const Submitted submitted = write.queue.apply(*command, write.now);
                     for (const std::string& uid : submitted.uids) response->add_job_ids(uid);
                     for (const std::string& uid : submitted.reused)
                       response->add_reused_job_ids(uid);
                     response->set_job_set_id(submitted.set_uid);
                     return changed_jobs(submitted);
                   });
}

grpc::ServerUnaryReactor* JobServiceApi::ValidateJobs(grpc::CallbackServerContext* context,
                                                      const v1::ValidateJobsRequest* request,
                                                      v1::ValidateJobsResponse* response) {
  wire::Violations violations;
  wire::validate(*request, {.enable_test_work = services_.options.enable_test_work}, violations);
  return read_call(
      services_, context, {}, "ValidateJobs",
      [request, response, violations](ReadStore& store, const Caller& caller) {
        for (const wire::Violation& violation : violations.list()) {
          auto& problem = *response->add_problems();
          problem.set_field(violation.field);
          problem.set_message(violation.description);
          problem.set_reason(violation.reason);
        }
        const auto specs = specs_of(*request);
        if (const std::string forbidden = forbidden_priority(specs, caller); !forbidden.empty()) {
          auto& problem = *response->add_problems();
          problem.set_field(forbidden.substr(0, forbidden.find(':')));
          problem.set_message(forbidden.substr(forbidden.find(':') + 2));
          problem.set_reason(std::string(wire::reason::kRoleRequired));
        }
        const std::vector<WorkerRow> workers = store.workers();
        for (int i = 0; i < specs.size(); ++i) {
          const v1::JobSpec& spec = specs[i];
          const std::string path =
              request->has_sweep() ? "sweep.job" : "jobs[" + std::to_string(i) + "]";
          for (int k = 0; k < spec.inputs_size(); ++k) {
            const v1::Input& input = spec.inputs(k);
            if (input.has_from() || !wire::is_digest(input.digest()))
              continue;  // made by another job, or already reported above
            const auto size = store.blob_size(scope_of(caller), input.digest());
            if (size && *size == static_cast<std::int64_t>(input.size_bytes())) continue;
            auto& problem = *response->add_problems();
            problem.set_field(path + ".spec.inputs[" + std::to_string(k) + "].digest");
            problem.set_message(size ? "the blob has " + std::to_string(*size) + " bytes"
                                     : "not in the blob store; upload it first");
            problem.set_reason(std::string(wire::reason::kInputsMissing));
          }
          const auto concerns_it = [&](const wire::Violation& violation) {
            return violation.field.starts_with(path);
          };
          if (std::any_of(violations.list().begin(), violations.list().end(), concerns_it))
            continue;  // the times of an invalid spec may not fit milliseconds
          const NewJob job = to_new_job(spec, path);
          add_absent_jobs(store, scope_of(caller), job, *response);
          const Prospect prospect = prospect_of(job.row, workers);
          if (prospect.chance == Chance::kFits) continue;
          const bool hopeless = prospect.chance == Chance::kTooLarge;
          auto& note = hopeless ? *response->add_problems() : *response->add_warnings();
          note.set_field(path + ".spec.resources" + (hopeless ? "." + prospect.field : ""));
          note.set_message(prospect.why);
          note.set_reason(std::string(wire::reason::kUnschedulable));
        }
      });
}

grpc::ServerUnaryReactor* JobServiceApi::GetJob(grpc::CallbackServerContext* context,
                                                const v1::GetJobRequest* request,
                                                v1::GetJobResponse* response) {
  return read_call(services_, context, violations_of(*request), "GetJob",
                   [request, response](ReadStore& store, const Caller& caller) {
                     const auto view = store.find(scope_of(caller), request->job_id());
                     if (!view) throw no_such_job(request->job_id());
                     v1::Job& job = *response->mutable_job();
                     job = to_job(*view);
                     add_awaited_jobs(store, scope_of(caller), view->row.id, job);
                     if (view->row.cancel_requested_ms > 0)
                       job.set_cancel_reason(store.cancel_reason(view->row.id));
                     for (const AttemptRow& attempt : store.attempts_of(view->row.id, 32)) {
                       v1::Attempt& message = *job.add_attempt_history();
                       message = to_message(attempt);
                       message.set_worker_name(store.worker_name(attempt.worker_id));
                     }
                     for (const ArtifactRow& artifact : store.artifacts_of(
                              view->row.id, "", static_cast<std::int32_t>(limits::kArtifacts)))
                       *job.add_artifacts() = to_message(artifact);
                   });
}

grpc::ServerUnaryReactor* JobServiceApi::ListJobs(grpc::CallbackServerContext* context,
                                                  const v1::ListJobsRequest* request,
                                                  v1::ListJobsResponse* response) {
  return read_call(
      services_, context, violations_of(*request), "ListJobs",
      [this, request, response](ReadStore& store, const Caller& caller) {
        const bool ascending = request->order() == v1::ListJobsRequest::ORDER_CREATED_ASCENDING;
        const std::string binding =
            canonical_bytes(request->filter()) + (ascending ? "/up" : "/down");
        RowId cursor = 0;
        if (!request->page_token().empty())
          cursor = std::stoll(page_payload(services_, "jobs", binding, request->page_token()));
        const std::int32_t size = page_size(request->page_size());
        const auto order = ascending ? ReadStore::Order::kAscending : ReadStore::Order::kDescending;
        std::vector<JobView> views =
            store.list(scope_of(caller), to_query(request->filter()),
                       {.order = order, .cursor = cursor, .limit = size + 1});
        std::size_t bytes = 0;
        RowId last = 0;
        for (std::size_t i = 0; i < views.size(); ++i) {
          v1::Job job = to_job(views[i]);
          bytes += job.ByteSizeLong() + 8;
          if (static_cast<std::int32_t>(i) == size || (i > 0 && bytes > kPageBytes)) {
            response->set_next_page_token(
                seal_token(services_.token_key, "jobs", binding, std::to_string(last)));
            break;
          }
          last = views[i].row.id;
          *response->add_jobs() = std::move(job);
        }
      });
}

grpc::ServerUnaryReactor* JobServiceApi::CancelJobs(grpc::CallbackServerContext* context,
                                                    const v1::CancelJobsRequest* request,
                                                    v1::CancelJobsResponse* response) {
  return jobs_call(
      services_, context, violations_of(*request), {"cancel", "CancelJobs"},
      [request, response](WriteContext& write, const Caller& caller) {
        server::CancelJobs command{.scope = scope_of(caller),
                                   .request_id = request->request_id(),
                                   .body_sha256 = body_digest(*request),
                                   .uids = {request->job_ids().begin(), request->job_ids().end()},
                                   .reason = request->reason(),
                                   .set_uid = request->job_set_id()};
        const Cancelled cancelled = write.queue.apply(command, write.now);
        for (std::size_t i = 0; i < cancelled.states.size(); ++i) {
          auto& result = *response->add_results();
          result.set_job_id(i < command.uids.size() ? command.uids[i] : cancelled.uids[i]);
          result.set_state(static_cast<v1::JobState>(cancelled.states[i]));
        }
        return JobsChanged{
            .uids = command.set_uid.empty() ? command.uids : std::vector{command.set_uid},
            .replayed = cancelled.replayed};
      });
}

grpc::ServerUnaryReactor* JobServiceApi::DeleteJobs(grpc::CallbackServerContext* context,
                                                    const v1::DeleteJobsRequest* request,
                                                    v1::DeleteJobsResponse*) {
  return jobs_call(services_, context, violations_of(*request), {"delete", "DeleteJobs"},
                   [request](WriteContext& write, const Caller& caller) {
                     const server::DeleteJobs command{
                         .scope = scope_of(caller),
                         .request_id = request->request_id(),
                         .body_sha256 = body_digest(*request),
                         .uids = {request->job_ids().begin(), request->job_ids().end()},
                         .reason = request->reason()};
                     const Deleted deleted = write.queue.apply(command, write.now);
                     return JobsChanged{.uids = command.uids, .replayed = deleted.replayed};
                   });
}

grpc::ServerWriteReactor<v1::WatchEvent>* JobServiceApi::WatchJobs(
    grpc::CallbackServerContext* context, const v1::WatchJobsRequest* request) {
  const Admission admission = stream_admission_of(services_, *context, "WatchJobs");
  if (!admission.caller)
    return new RefusedStream<grpc::ServerWriteReactor<v1::WatchEvent>>(admission.refusal);
  return watch_jobs(services_, context, *request, admission);
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* JobServiceApi::ReadLogs(
    grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) {
  const Admission admission = stream_admission_of(services_, *context, "ReadLogs");
  if (!admission.caller)
    return new RefusedStream<grpc::ServerWriteReactor<v1::ReadLogsResponse>>(admission.refusal);
  return read_logs(services_, context, *request, admission);
}

grpc::ServerUnaryReactor* JobServiceApi::ListArtifacts(grpc::CallbackServerContext* context,
                                                       const v1::ListArtifactsRequest* request,
                                                       v1::ListArtifactsResponse* response) {
  return read_call(
      services_, context, violations_of(*request), "ListArtifacts",
      [this, request, response](ReadStore& store, const Caller& caller) {
        const auto view = store.find(scope_of(caller), request->job_id());
        if (!view) throw no_such_job(request->job_id());
        std::string after;
        if (!request->page_token().empty())
          after = page_payload(services_, "artifacts", request->job_id(), request->page_token());
        const std::int32_t size = page_size(request->page_size());
        const auto artifacts = store.artifacts_of(view->row.id, after, size + 1);
        for (std::size_t i = 0; i < artifacts.size(); ++i) {
          if (static_cast<std::int32_t>(i) == size) {
            response->set_next_page_token(seal_token(services_.token_key, "artifacts",
                                                     request->job_id(), artifacts[i - 1].name));
            break;
          }
          *response->add_artifacts() = to_message(artifacts[i]);
        }
      });
}

grpc::ServerUnaryReactor* JobServiceApi::ListPools(grpc::CallbackServerContext* context,
                                                   const v1::ListPoolsRequest* request,
                                                   v1::ListPoolsResponse* response) {
  // The writer knows which workers are alive. The store knows every worker that ever registered,
  // and the queued jobs.
  return ask_and_read<std::vector<WorkerStatus>>(
      services_, context, violations_of(*request), "ListPools",
      [](WriteContext& write, const Caller&) { return write.queue.fleet(write.now); },
      [response](ReadStore& store, const Caller& caller, const std::vector<WorkerStatus>& fleet) {
        *response = to_response(scope_of(caller), fleet, store);
      });
}

}  // namespace quasi::server
