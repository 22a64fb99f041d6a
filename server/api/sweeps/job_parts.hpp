#pragma once

#include "server/api/access/act.hpp"
#include "server/api/convert.hpp"
#include "server/store/read_store.hpp"

/// Begin here: server/api/sweeps converts sweeps, sets of jobs, and the jobs that a job waits for.
namespace quasi::server {

using JobSpecs = google::protobuf::RepeatedPtrField<v1::JobSpec>;

/// The jobs of a request, or the template of its sweep.
JobSpecs specs_of(const v1::SubmitJobsRequest& request);
JobSpecs specs_of(const v1::ValidateJobsRequest& request);

/// Enters the jobs of a valid request, or those of its sweep with their set.
void add_jobs(const v1::SubmitJobsRequest& request, SubmitJobs& command);

/// Names the jobs of a submission in the log and in the audit; a sweep is named by its set.
JobsChanged changed_jobs(const Submitted& submitted);

/// Adds a problem for each job that a job waits for and that the caller may not see.
void add_absent_jobs(ReadStore& store, const Scope& scope, const NewJob& job,
                     v1::ValidateJobsResponse& response);

/// Adds the jobs that a job waits or waited for, and the files that they made for it.
void add_awaited_jobs(ReadStore& store, const Scope& scope, RowId id, v1::Job& job);

v1::JobSet to_message(const JobSetView& view);

}  // namespace quasi::server
