// Tests sweeps, sets of jobs and dependencies through the calls of a real server.

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "proto/wire/limits.hpp"
#include "proto/wire/sweeps/sweep.hpp"
#include "tests/service/server/request_templates.hpp"

namespace quasi::server {
namespace {

using test::submit_sweep;
using test::sweep_over;

class SweepCalls : public test::RequestTemplates {
 protected:
  SweepCalls() { prepare(); }

  template <class Request, class Response>
  grpc::Status call(grpc::Status (v1::JobService::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    limit(context);
    return (jobs_.get()->*method)(&context, request, &response);
  }
  v1::JobSpec waiting_spec() {
    v1::JobSpec spec = full_spec();
    spec.set_priority(0);
    return spec;
  }
  v1::JobSet set_of(const std::string& id) {
    v1::GetJobSetRequest request;
    request.set_job_set_id(id);
    v1::GetJobSetResponse response;
    EXPECT_TRUE(call(&v1::JobService::Stub::GetJobSet, request, response).ok());
    return response.job_set();
  }
  v1::Job job_of(const std::string& id) {
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    EXPECT_TRUE(call(&v1::JobService::Stub::GetJob, request, response).ok());
    return response.job();
  }
  std::vector<v1::Job> jobs_in(const std::string& set) {
    v1::ListJobsRequest request;
    request.mutable_filter()->set_job_set_id(set);
    request.set_order(v1::ListJobsRequest::ORDER_CREATED_ASCENDING);
    request.set_page_size(7);
    std::vector<v1::Job> jobs;
    do {
      v1::ListJobsResponse response;
      EXPECT_TRUE(call(&v1::JobService::Stub::ListJobs, request, response).ok());
      jobs.insert(jobs.end(), response.jobs().begin(), response.jobs().end());
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return jobs;
  }
  /// The field and the sentence of the refusal of a sweep.
  std::string refusal(const v1::Sweep& sweep) {
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    *request.mutable_sweep() = sweep;
    v1::SubmitJobsResponse response;
    const grpc::Status status = call(&v1::JobService::Stub::SubmitJobs, request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    const auto details = wire::parse_details(status);
    return details.fields.empty() ? status.error_message()
                                  : details.fields[0].field + ": " + details.fields[0].description;
  }
};

// The last axis varies fastest, and the settings of the points come after those of the template.
TEST_F(SweepCalls, JobsHaveTheOrderAndTheNamesOfTheirPoints) {
  v1::Sweep sweep = sweep_over(waiting_spec(), 3);
  sweep.set_max_concurrent(2);
  const auto submitted = submit_sweep(*jobs_, sweep);
  ASSERT_EQ(submitted.job_ids_size(), 6);
  const auto jobs = jobs_in(submitted.job_set_id());
  ASSERT_EQ(jobs.size(), 6U);
  std::string names;
  for (int i = 0; i < 6; ++i) {
    const v1::Job& job = jobs[static_cast<std::size_t>(i)];
    EXPECT_EQ(job.id(), submitted.job_ids(i));
    EXPECT_EQ(job.job_set_id(), submitted.job_set_id());
    EXPECT_EQ(job.state(), i < 2 ? v1::JOB_STATE_QUEUED : v1::JOB_STATE_BLOCKED);
    names += job.spec().name() + " ";
    const auto& settings = job.spec().thermal().settings();
    ASSERT_EQ(settings.size(), 4);
    EXPECT_EQ(settings[0].value(), "300") << "of the template";
    EXPECT_EQ(settings[1].value(), std::to_string(100 + i / 2));
    EXPECT_EQ(settings[2].value(), i % 2 == 0 ? "8 8 8" : "12 12 12");
  }
  EXPECT_EQ(names,
            "silicon[0,0] silicon[0,1] silicon[1,0] silicon[1,1] silicon[2,0] silicon[2,1] ");
  const v1::JobSet set = set_of(submitted.job_set_id().substr(0, 20));
  EXPECT_EQ(set.name(), "silicon");
  EXPECT_EQ(set.axes_size(), 2);
  EXPECT_EQ(set.max_concurrent(), 2U);
  ASSERT_EQ(set.counts_size(), 2);
  EXPECT_EQ(set.counts(0).state(), v1::JOB_STATE_BLOCKED);
  EXPECT_EQ(set.counts(0).jobs(), 4U);
}

TEST_F(SweepCalls, ASetIsCancelledAndListed) {
  const std::string first = submit_sweep(*jobs_, sweep_over(waiting_spec(), 2)).job_set_id();
  const std::string second = submit_sweep(*jobs_, sweep_over(waiting_spec(), 1)).job_set_id();
  v1::CancelJobsRequest request;
  request.set_job_set_id(first);
  v1::CancelJobsResponse response;
  ASSERT_TRUE(call(&v1::JobService::Stub::CancelJobs, request, response).ok());
  EXPECT_EQ(response.results_size(), 4);
  for (const auto& result : response.results()) {
    EXPECT_EQ(result.state(), v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(job_of(result.job_id()).state(), v1::JOB_STATE_CANCELLED);
  }
  v1::ListJobSetsRequest list;
  list.set_page_size(1);
  v1::ListJobSetsResponse page;
  ASSERT_TRUE(call(&v1::JobService::Stub::ListJobSets, list, page).ok());
  ASSERT_EQ(page.job_sets_size(), 1);
  EXPECT_EQ(page.job_sets(0).id(), second);
  list.set_page_token(page.next_page_token());
  ASSERT_TRUE(call(&v1::JobService::Stub::ListJobSets, list, page).ok());
  EXPECT_EQ(page.job_sets(0).id(), first);
  EXPECT_EQ(page.job_sets(0).counts(0).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(page.next_page_token(), "");
}

TEST_F(SweepCalls, BadSweepsAreRefusedByField) {
  v1::Sweep sweep = sweep_over(waiting_spec(), 2);
  sweep.mutable_axes(0)->mutable_points(1)->add_values("more");
  EXPECT_EQ(refusal(sweep),
            "sweep.axes[0].points[1].values: must have one entry for each of the 1 keys, got 2");
  sweep = sweep_over(waiting_spec(), 2);
  sweep.mutable_axes(1)->set_keys(1, "T");
  EXPECT_EQ(refusal(sweep), "sweep.axes[1].keys[1]: \"T\" varies twice; give each key once");
  EXPECT_EQ(refusal(sweep_over(waiting_spec(), 5'001)),
            "sweep.axes: must have at most 10000 combinations; cut the sweep into several");
  sweep = sweep_over(waiting_spec(), 2);
  sweep.mutable_job()->add_depends_on()->set_index(0);
  EXPECT_EQ(refusal(sweep),
            "sweep.job.depends_on[0].index: must not be set in a sweep; name the job by its id");
  sweep = sweep_over(waiting_spec(), 2);
  sweep.mutable_job()->mutable_test()->mutable_noop();
  EXPECT_EQ(refusal(sweep), "sweep.job: must be a job with a deck, whose keys the axes vary");
  EXPECT_EQ(refusal(v1::Sweep()).substr(0, 9), "sweep.job");
}

TEST_F(SweepCalls, BadStopRulesAreRefusedByField) {
  const auto with_rule = [this](const std::string& figure, int comparison, double value,
                                std::uint32_t jobs) {
    v1::Sweep sweep = sweep_over(waiting_spec(), 2);
    v1::StopRule& rule = *sweep.add_stop_rules();
    rule.set_figure(figure);
    rule.set_comparison(static_cast<v1::StopRule::Comparison>(comparison));
    rule.set_value(value);
    rule.set_jobs(jobs);
    return sweep;
  };
  EXPECT_EQ(refusal(with_rule("", 1, 0, 0)),
            "sweep.stop_rules[0].figure: must name a figure of quasi table, got \"\"");
  for (const int comparison : {0, 5})
    EXPECT_EQ(refusal(with_rule("x", comparison, 0, 0)),
              "sweep.stop_rules[0].comparison: must be BELOW, AT_MOST, ABOVE or AT_LEAST, got "
              "number " +
                  std::to_string(comparison));
  EXPECT_EQ(refusal(with_rule("x", 1, std::nan(""), 0)),
            "sweep.stop_rules[0].value: must be a finite number");
  EXPECT_EQ(refusal(with_rule("x", 1, 0, 5)),
            "sweep.stop_rules[0].jobs: must be at most the 4 jobs of the sweep, got 5");
  v1::Sweep many = with_rule("x", 1, 0, 0);
  while (many.stop_rules_size() < 9) *many.add_stop_rules() = many.stop_rules(0);
  EXPECT_EQ(refusal(many).substr(0, 16), "sweep.stop_rules");

  const auto submitted = submit_sweep(*jobs_, with_rule("kappa.xx", 4, 2.5, 4));
  const v1::JobSet set = set_of(submitted.job_set_id());
  ASSERT_EQ(set.stop_rules_size(), 1);
  EXPECT_EQ(set.stop_rules(0).rule().figure(), "kappa.xx");
  EXPECT_EQ(set.stop_rules(0).rule().comparison(), v1::StopRule::COMPARISON_AT_LEAST);
  EXPECT_EQ(set.stop_rules(0).rule().value(), 2.5);
  EXPECT_EQ(set.stop_rules(0).rule().jobs(), 4U);
  EXPECT_EQ(set.stop_reason(), "");
}

TEST_F(SweepCalls, AJobNamesOnlyEarlierOnesOfItsCall) {
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  for (int i = 0; i < 2; ++i) request.add_jobs()->mutable_test()->mutable_noop();
  request.mutable_jobs(0)->add_depends_on()->set_index(1);
  request.mutable_jobs(1)->add_depends_on()->set_index(1);
  v1::SubmitJobsResponse response;
  const grpc::Status status = call(&v1::JobService::Stub::SubmitJobs, request, response);
  const auto details = wire::parse_details(status);
  ASSERT_EQ(details.fields.size(), 2U);
  EXPECT_EQ(details.fields[0].field, "jobs[0].depends_on[0].index");
  EXPECT_EQ(details.fields[0].description,
            "must name a job before this one, which is job 0 of the call, got 1; order the jobs so "
            "that each waits for earlier ones");
}

// A chain through a worker: the second job waits, gets the file of the first, and shows both.
TEST_F(SweepCalls, AChainGoesThroughAWorker) {
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  for (int i = 0; i < 2; ++i) request.add_jobs()->mutable_test()->mutable_noop();
  v1::Input& input = *request.mutable_jobs(1)->add_inputs();
  input.set_slot("deck/eps.h5");
  input.mutable_from()->set_index(0);
  input.mutable_from()->set_artifact("epsilon.h5");
  v1::SubmitJobsResponse submitted;
  const grpc::Status status = call(&v1::JobService::Stub::SubmitJobs, request, submitted);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string first = submitted.job_ids(0), second = submitted.job_ids(1);
  EXPECT_EQ(job_of(second).state(), v1::JOB_STATE_BLOCKED);
  EXPECT_EQ(job_of(second).spec().inputs(0).from().job_id(), first);
  EXPECT_EQ(job_of(second).dependencies(0).job_id(), first);

  v1::AcquireLeasesResponse leases;
  const auto acquire = [&] {
    grpc::ClientContext context;
    limit(context);
    leases.Clear();
    return workers_->AcquireLeases(&context, acquisition(), &leases);
  };
  ASSERT_TRUE(acquire().ok());
  ASSERT_EQ(leases.grants_size(), 1);
  begin(leases.grants(0).attempt());
  v1::CompleteAttemptRequest report;
  *report.mutable_attempt() = leases.grants(0).attempt();
  v1::Artifact& artifact = *report.mutable_succeeded()->add_artifacts();
  artifact.set_name("epsilon.h5");
  artifact.set_digest(digest_);
  artifact.set_size_bytes(size_);
  artifact.set_media_type("application/x-hdf5");
  report.mutable_succeeded()->set_summary_json("{}");
  grpc::ClientContext context;
  limit(context);
  v1::CompleteAttemptResponse answer;
  const grpc::Status done = workers_->CompleteAttempt(&context, report, &answer);
  ASSERT_TRUE(done.ok()) << done.error_message();

  ASSERT_TRUE(acquire().ok());
  ASSERT_EQ(leases.grants_size(), 1);
  EXPECT_EQ(leases.grants(0).job_id(), second);
  const v1::Input& staged = leases.grants(0).spec().inputs(0);
  EXPECT_EQ(staged.digest(), digest_);
  EXPECT_EQ(staged.size_bytes(), size_);
  EXPECT_EQ(job_of(second).spec().inputs(0).digest(), digest_);
}

// The figure of a large sweep: its submission, with each of its rows, is on the disk.
TEST_F(SweepCalls, TenThousandJobsGoInAtOnce) {
  v1::Sweep sweep = sweep_over(waiting_spec(), 5'000);
  sweep.set_max_concurrent(100);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  const auto submitted = submit_sweep(*jobs_, sweep);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(submitted.job_ids_size(), 10'000);
  std::cout << "10,000 jobs of a sweep in " << took.count() << " s, "
            << static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC << " s of processors\n";
  const auto begin = std::chrono::steady_clock::now();
  v1::CancelJobsRequest request;
  request.set_job_set_id(submitted.job_set_id());
  v1::CancelJobsResponse response;
  ASSERT_TRUE(call(&v1::JobService::Stub::CancelJobs, request, response).ok());
  const std::chrono::duration<double> cancelled = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(response.results_size(), 10'000);
  std::cout << "cancelled in " << cancelled.count() << " s\n";
  if (const char* most = std::getenv("QUASI_SWEEP_SECONDS")) {
    EXPECT_LE(took.count(), std::strtod(most, nullptr));
  }
}

}  // namespace
}  // namespace quasi::server
