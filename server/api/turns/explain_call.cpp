#include "server/api/calls.hpp"
#include "server/api/job_service.hpp"

namespace quasi::server {

grpc::ServerUnaryReactor* JobServiceApi::ExplainJob(grpc::CallbackServerContext* context,
                                                    const v1::ExplainJobRequest* request,
                                                    v1::ExplainJobResponse* response) {
  // The writer knows the workers. A reader counts the jobs before this one.
  return ask_and_read<Explanation>(
      services_, context, violations_of(*request), "ExplainJob",
      [request](WriteContext& write, const Caller& caller) {
        return write.queue.explain(scope_of(caller), request->job_id(), write.now);
      },
      [request, response](ReadStore& store, const Caller&, const Explanation& explanation) {
        constexpr std::int64_t kMostCounted = 10'000;
        const JobRow& job = explanation.job;
        response->set_job_id(request->job_id());
        response->set_state(static_cast<v1::JobState>(job.state));
        response->set_reason(static_cast<v1::WaitReason>(explanation.reason));
        response->set_message(explanation.message);
        if (job.state == JobState::kQueued && job.ready)
          response->set_position(
              static_cast<std::uint64_t>(store.jobs_before(job, kMostCounted) + 1));
        for (const std::string& uid : explanation.blocking) response->add_blocking_job_ids(uid);
        response->set_blocking_jobs(static_cast<std::uint64_t>(explanation.blocking_jobs));
        for (const std::string& id : explanation.worker_ids) response->add_worker_ids(id);
        response->set_needed_gpu_bytes(static_cast<std::uint64_t>(explanation.needed_bytes));
        response->set_memory_correction(explanation.memory_correction);
        response->set_time_correction(explanation.time_correction);
        response->set_expected_runtime_seconds(1e-3 * explanation.time_correction *
                                               static_cast<double>(job.max_runtime_ms));
        if (explanation.earliest_ms > 0)
          *response->mutable_earliest_start() = to_timestamp(explanation.earliest_ms);
        if (explanation.latest_ms > 0 && response->position() == 1)
          *response->mutable_latest_start() = to_timestamp(explanation.latest_ms);
        if (explanation.expected_ms > 0 && response->position() == 1)
          *response->mutable_expected_start() = to_timestamp(explanation.expected_ms);
      });
}

}  // namespace quasi::server
