#include "server/api/sweeps/job_parts.hpp"

#include <algorithm>

#include "proto/wire/sweeps/sweep.hpp"

namespace quasi::server {
namespace {

template <class Request>
JobSpecs jobs_or_template(const Request& request) {
  if (!request.has_sweep()) return request.jobs();
  JobSpecs specs;
  *specs.Add() = request.sweep().job();
  return specs;
}

}  // namespace

JobSpecs specs_of(const v1::SubmitJobsRequest& request) { return jobs_or_template(request); }
JobSpecs specs_of(const v1::ValidateJobsRequest& request) { return jobs_or_template(request); }

void add_jobs(const v1::SubmitJobsRequest& request, SubmitJobs& command) {
  for (int i = 0; i < request.jobs_size(); ++i)
    command.jobs.push_back(to_new_job(request.jobs(i), "jobs[" + std::to_string(i) + "]"));
  if (!request.has_sweep()) return;
  const v1::Sweep& sweep = request.sweep();
  const std::size_t n_jobs = wire::jobs_in_sweep(sweep);
  for (std::size_t i = 0; i < n_jobs; ++i)
    command.jobs.push_back(to_new_job(wire::job_of_sweep(sweep, i), "sweep.job"));
  v1::JobSet axes;
  *axes.mutable_axes() = sweep.axes();
  JobSetRow& set = command.set.emplace();
  set.name = sweep.job().name();
  set.max_concurrent = sweep.max_concurrent();
  set.stop_after_failures = sweep.stop_after_failures();
  for (const v1::StopRule& rule : sweep.stop_rules())
    set.stop_rules.push_back(
        {.condition = {.figure = rule.figure(),
                       .comparison = static_cast<wire::Comparison>(rule.comparison()),
                       .value = rule.value(),
                       .jobs = std::max<std::int64_t>(1, rule.jobs())}});
  set.axes = canonical_bytes(axes);
}

JobsChanged changed_jobs(const Submitted& submitted) {
  return {.uids = submitted.set_uid.empty() ? submitted.uids : std::vector{submitted.set_uid},
          .replayed = submitted.replayed};
}

void add_absent_jobs(ReadStore& store, const Scope& scope, const NewJob& job,
                     v1::ValidateJobsResponse& response) {
  const auto check = [&](const JobReference& reference, const std::string& field) {
    if (reference.uid.empty() || store.find(scope, reference.uid)) return;
    auto& problem = *response.add_problems();
    problem.set_field(field);
    problem.set_message("there is no job " + reference.uid);
    problem.set_reason(std::string(wire::reason::kJob));
  };
  for (const NewDependency& dependency : job.dependencies) check(dependency.job, dependency.field);
  for (const ArtifactInput& input : job.artifact_inputs) check(input.job, input.field);
}

void add_awaited_jobs(ReadStore& store, const Scope& scope, RowId id, v1::Job& job) {
  for (const AwaitedView& awaited : store.dependencies_of(scope, id)) {
    v1::AwaitedJob& message = *job.add_dependencies();
    message.set_job_id(awaited.uid);
    message.set_name(awaited.name);
    message.set_state(static_cast<v1::JobState>(awaited.state));
    message.set_condition(static_cast<v1::Dependency::Condition>(awaited.condition));
  }
  for (const ReadStore::MadeInput& made : store.made_inputs_of(id)) {
    for (v1::Input& input : *job.mutable_spec()->mutable_inputs()) {
      if (input.slot() != made.input.slot) continue;
      input.set_digest(made.input.digest);
      input.set_size_bytes(static_cast<std::uint64_t>(made.input.size_bytes));
      input.mutable_from()->set_job_id(made.job_uid);
    }
  }
}

v1::JobSet to_message(const JobSetView& view) {
  v1::JobSet set;
  set.ParseFromString(view.row.axes);
  set.set_id(view.row.uid);
  set.set_name(view.row.name);
  set.set_owner(view.owner);
  set.set_tenant(view.row.tenant);
  *set.mutable_created() = to_timestamp(view.row.created_ms);
  set.set_max_concurrent(static_cast<std::uint32_t>(view.row.max_concurrent));
  set.set_stop_after_failures(static_cast<std::uint32_t>(view.row.stop_after_failures));
  if (view.row.stopped_ms > 0) *set.mutable_stopped() = to_timestamp(view.row.stopped_ms);
  set.set_stop_reason(view.row.stop_reason);
  for (const StopRuleRow& row : view.row.stop_rules) {
    v1::JobSet::StopRuleState& state = *set.add_stop_rules();
    state.mutable_rule()->set_figure(row.condition.figure);
    state.mutable_rule()->set_comparison(
        static_cast<v1::StopRule::Comparison>(row.condition.comparison));
    state.mutable_rule()->set_value(row.condition.value);
    state.mutable_rule()->set_jobs(static_cast<std::uint32_t>(row.condition.jobs));
    state.set_jobs_met(static_cast<std::uint32_t>(row.met));
    state.set_jobs_lacking(static_cast<std::uint32_t>(row.lacking));
  }
  for (const auto& [state, jobs] : view.counts) {
    v1::JobSet::StateCount& count = *set.add_counts();
    count.set_state(static_cast<v1::JobState>(state));
    count.set_jobs(static_cast<std::uint64_t>(jobs));
  }
  return set;
}

}  // namespace quasi::server
