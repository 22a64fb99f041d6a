#pragma once

// Sound requests about sweeps and about sets of jobs.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server::test {

/// The messages that a client sends in one call.
using Messages = std::vector<std::unique_ptr<google::protobuf::Message>>;

/// Makers of sound requests, by the name of the call.
using Templates = std::map<std::string, std::function<Messages()>>;

/// A sweep of `points` values over one key, and of two rows of a table.
inline v1::Sweep sweep_over(const v1::JobSpec& job, int points) {
  v1::Sweep sweep;
  *sweep.mutable_job() = job;
  v1::SweepAxis& axis = *sweep.add_axes();
  axis.add_keys("T");
  for (int i = 0; i < points; ++i) axis.add_points()->add_values(std::to_string(100 + i));
  v1::SweepAxis& table = *sweep.add_axes();
  table.add_keys("ngrid");
  table.add_keys("scalebroad");
  for (const char* mesh : {"8 8 8", "12 12 12"}) {
    v1::SweepPoint& point = *table.add_points();
    point.add_values(mesh);
    point.add_values("0.1");
  }
  return sweep;
}

/// Submits a sweep. @return the answer
inline v1::SubmitJobsResponse submit_sweep(v1::JobService::Stub& jobs, const v1::Sweep& sweep) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(200));
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  *request.mutable_sweep() = sweep;
  v1::SubmitJobsResponse response;
  const grpc::Status status = jobs.SubmitJobs(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

/// Adds the calls about sets of jobs. Every other submission is a sweep.
inline void add_sweeps(Templates& all, v1::JobService::Stub& jobs,
                       const std::function<v1::JobSpec()>& spec) {
  const auto one = [](const auto& request) {
    Messages messages;
    messages.push_back(std::make_unique<std::decay_t<decltype(request)>>(request));
    return messages;
  };
  const std::string set = submit_sweep(jobs, sweep_over(spec(), 2)).job_set_id();
  all["SubmitJobs"] = [one, spec, of_jobs = all["SubmitJobs"], n = 0]() mutable {
    if (++n % 2 == 0) return of_jobs();
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    *request.mutable_sweep() = sweep_over(spec(), 1);
    request.mutable_sweep()->set_max_concurrent(1);
    request.mutable_sweep()->set_stop_after_failures(2);
    v1::StopRule& rule = *request.mutable_sweep()->add_stop_rules();
    rule.set_figure("kappa.xx");
    rule.set_comparison(v1::StopRule::COMPARISON_BELOW);
    rule.set_value(50.0);
    rule.set_jobs(1);
    return one(request);
  };
  all["GetJobSet"] = [one, set] {
    v1::GetJobSetRequest request;
    request.set_job_set_id(set);
    return one(request);
  };
  all["ListJobSets"] = [one] {
    v1::ListJobSetsRequest request;
    request.set_page_size(10);
    return one(request);
  };
}

}  // namespace quasi::server::test
