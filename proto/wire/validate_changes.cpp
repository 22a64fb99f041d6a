// Checks the calls that change named jobs.

#include "proto/wire/checks.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::wire {
namespace {

/// Checks the id of a change of named jobs, and the ids of the jobs.
template <class Request>
void check_ids(const Request& request, Violations& violations) {
  if (!request.request_id().empty()) checks::uuid(request.request_id(), "request_id", violations);
  const auto size = static_cast<std::uint64_t>(request.job_ids_size());
  if (size == 0 || size > limits::kIdsPerCall)
    violations.add("job_ids", "must have 1..." + std::to_string(limits::kIdsPerCall) +
                                  " entries, got " + std::to_string(size));
  for (int i = 0; i < request.job_ids_size(); ++i)
    checks::id(request.job_ids(i), 'j', checks::at("", "job_ids", i), violations);
}

/// Checks a text that is a whole id, or the beginning of one with at least 6 characters.
void check_prefix(const std::string& id, char prefix, const std::string& field,
                  Violations& violations) {
  // Padding completes a prefix with valid characters.
  std::string padded = id;
  if (id.size() >= 8 && id.size() < 28) padded.append(28 - id.size(), '0');
  if (!is_id(padded, prefix))
    violations.add(field, std::string("must be an id, ") + prefix +
                              "_ and 26 base32 characters, or at least the first 6 of them, got " +
                              checks::shown(id));
}

/// Checks a change of named jobs: its id, the ids of the jobs and its reason.
template <class Request>
void check_change(const Request& request, Violations& violations) {
  check_ids(request, violations);
  checks::text(request.reason(), limits::kReasonBytes, "reason", violations);
}

}  // namespace

void validate(const v1::CancelJobsRequest& request, Violations& violations) {
  if (request.job_set_id().empty()) return check_change(request, violations);
  if (!request.request_id().empty()) checks::uuid(request.request_id(), "request_id", violations);
  checks::id(request.job_set_id(), 's', "job_set_id", violations);
  checks::text(request.reason(), limits::kReasonBytes, "reason", violations);
  if (!request.job_ids().empty())
    violations.add("job_ids", "must be empty beside a job_set_id, got " +
                                  std::to_string(request.job_ids_size()) + " entries");
}

void validate(const v1::GetJobSetRequest& request, Violations& violations) {
  check_prefix(request.job_set_id(), 's', "job_set_id", violations);
}

void validate(const v1::ListJobSetsRequest& request, Violations& violations) {
  checks::page(request.page_size(), request.page_token(), violations);
}

void validate(const v1::DeleteJobsRequest& request, Violations& violations) {
  check_change(request, violations);
}

void validate(const v1::HoldJobsRequest& request, Violations& violations) {
  check_change(request, violations);
}

void validate(const v1::ReleaseJobsRequest& request, Violations& violations) {
  check_change(request, violations);
}

void validate(const v1::ReprioritiseJobsRequest& request, Violations& violations) {
  check_ids(request, violations);
  const auto limit = static_cast<std::int64_t>(limits::kPriority);
  const std::int64_t priority = request.priority();
  if (priority < -limit || priority > limit)
    violations.add("priority", "must be -100...100, got " + std::to_string(priority));
}

void validate(const v1::PreemptJobsRequest& request, Violations& violations) {
  check_change(request, violations);
}

namespace {

/// Checks an order that takes a worker or a device out of service.
template <class Request>
void check_order(const Request& request, Violations& violations) {
  if (request.worker().empty())
    violations.add("worker", "must be the id or the name of a worker, got \"\"");
  checks::text(request.worker(), limits::kNameBytes, "worker", violations);
  checks::duration(request.within(), "within", violations);
  checks::text(request.reason(), limits::kReasonBytes, "reason", violations);
}

}  // namespace

void validate(const v1::DrainWorkerRequest& request, Violations& violations) {
  check_order(request, violations);
}

void validate(const v1::CordonDeviceRequest& request, Violations& violations) {
  check_order(request, violations);
  if (request.device().empty())
    violations.add("device", "must be the id of a device of the worker, got \"\"");
  checks::text(request.device(), limits::kNameBytes, "device", violations);
}

}  // namespace quasi::wire
