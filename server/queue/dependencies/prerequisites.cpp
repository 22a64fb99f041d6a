#include "server/queue/dependencies/prerequisites.hpp"

#include "server/queue/refused.hpp"

namespace quasi::server {
namespace {

std::string shown(const JobReference& job) {
  return job.uid.empty() ? "jobs[" + std::to_string(job.index) + "]" : "job " + job.uid;
}

Refused no_such_job(const std::string& field, const std::string& uid) {
  return Refused(Refusal::kNotFound, "JOB", field + ": there is no job " + uid);
}

Refused never_starts(const std::string& field, const std::string& why) {
  return Refused(Refusal::kFailedPrecondition, "DEPENDENCY_FAILED",
                 field + ": " + why + ", so that the new job could never start; name another job");
}

}  // namespace

std::optional<JobInput> made_input(Store& store, RowId source, const ArtifactInput& input) {
  const auto artifact = store.find_artifact(source, input.artifact);
  if (!artifact) return std::nullopt;
  const auto size = store.blob_size(Scope::everything(), artifact->digest);
  if (!size) return std::nullopt;
  return JobInput{.slot = input.slot, .digest = artifact->digest, .size_bytes = *size};
}

Prerequisites::Prerequisites(Store& store, const Scope& scope, std::vector<NewJob>& jobs)
    : store_(store), jobs_(jobs), awaited_(jobs.size()) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto add = [&](const NewDependency& dependency) {
      const std::string& uid = dependency.job.uid;
      if (!uid.empty() && known_.count(uid) == 0) {
        auto row = store.find_job(scope, uid);
        if (!row) throw no_such_job(dependency.field, uid);
        known_[uid] = std::move(*row);
      }
      const auto [known, is_new] = awaited_[i].try_emplace(dependency.job, dependency);
      if (dependency.condition == Condition::kSuccess) known->second = dependency;
    };
    for (const NewDependency& dependency : jobs[i].dependencies) add(dependency);
    for (const ArtifactInput& input : jobs[i].artifact_inputs)
      add({.job = input.job, .condition = Condition::kSuccess, .field = input.field});
  }
}

Prerequisites::Named Prerequisites::look_up(const JobReference& job) const {
  if (!job.uid.empty()) {
    const JobRow& row = known_.at(job.uid);
    return {.uid = row.uid, .state = row.state, .maker = row.id};
  }
  const JobRow& row = jobs_.at(job.index).row;
  if (!row.taken_from) return {};
  return {.uid = {}, .state = JobState::kSucceeded, .maker = *row.taken_from};
}

RowId Prerequisites::id_of(const JobReference& job) const {
  return job.uid.empty() ? jobs_.at(job.index).row.id : known_.at(job.uid).id;
}

void Prerequisites::resolve(std::size_t index) {
  NewJob& job = jobs_[index];
  for (const auto& [reference, dependency] : awaited_[index]) {
    const Named named = look_up(reference);
    if (!is_final(named.state)) {
      ++job.row.unmet;
    } else if (dependency.condition == Condition::kSuccess && named.state != JobState::kSucceeded) {
      throw never_starts(dependency.field,
                         shown(reference) + " is " + std::string(name_of(named.state)));
    }
  }
  for (const ArtifactInput& input : job.artifact_inputs) {
    const Named named = look_up(input.job);
    if (!is_final(named.state)) continue;
    auto made = made_input(store_, named.maker, input);
    if (!made)
      throw never_starts(input.field,
                         shown(input.job) + " has no whole artefact '" + input.artifact + "'");
    job.inputs.push_back(std::move(*made));
  }
}

void Prerequisites::insert(std::size_t index) {
  const NewJob& job = jobs_[index];
  for (const auto& [reference, dependency] : awaited_[index])
    store_.insert_dependency(job.row.id, id_of(reference), dependency.condition);
  for (const ArtifactInput& input : job.artifact_inputs)
    store_.insert_artifact_input(job.row.id, id_of(input.job), input);
}

}  // namespace quasi::server
