#include "tests/service/support/service_fixture.hpp"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/client_context.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "proto/wire/channel.hpp"
#include "proto/wire/chunks.hpp"

namespace quasi::test {

using google::protobuf::util::TimeUtil;

namespace {

google::protobuf::Duration duration(double seconds) {
  return TimeUtil::MillisecondsToDuration(static_cast<std::int64_t>(seconds * 1e3));
}

void limit(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
}

bool away(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

}  // namespace

Service::Service(std::vector<std::string> server_flags)
    : server_flags_(std::move(server_flags)),
      channel_(wire::open_channel(address())),
      stub_(v1::JobService::NewStub(channel_)) {}

void Service::start_server() {
  std::vector<std::string> flags{"--data-directory",   (directory_.path() / "data").string(),
                                 "--listen",           address(),
                                 "--enable-test-work", "true",
                                 "--lease-ttl",        "2",
                                 "--requeue-delay",    "0.2",
                                 "--retry-back-off",   "0.05",
                                 "--restart-grace",    "1"};
  flags.insert(flags.end(), server_flags_.begin(), server_flags_.end());
  server_ = std::make_unique<Program>("quasi-server", flags, directory_.path() / "server.log");
  const bool up = wait_for(
      [&] {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
        v1::GetCapabilitiesResponse response;
        return stub_->GetCapabilities(&context, {}, &response).ok();
      },
      within(60));
  if (!up) throw std::runtime_error("the server does not answer:\n" + server_->output());
}

std::filesystem::path Service::worker_state(const std::string& name) const {
  return directory_.path() / ("worker-" + name);
}

std::string Service::worker_log(const std::string& name) const {
  std::ifstream in(directory_.path() / (name + ".log"));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void Service::start_worker(const std::string& name, const std::vector<std::string>& extra) {
  std::vector<std::string> flags{"--server",           address(),
                                 "--state-directory",  worker_state(name).string(),
                                 "--name",             name,
                                 "--devices",          "none",
                                 "--threads",          "1",
                                 "--cancel-grace-s",   "0.5",
                                 "--terminate-grace-s", "0.5",
                                 "--drain-timeout-s",  "1",
                                 "--min-free-scratch-bytes", "0"};
  // A flag given twice would be refused: the test's own replace these.
  for (std::size_t i = 0; i + 1 < extra.size(); i += 2) {
    bool replaced = false;
    for (std::size_t j = 0; j + 1 < flags.size(); j += 2)
      if (flags[j] == extra[i]) {
        flags[j + 1] = extra[i + 1];
        replaced = true;
      }
    if (!replaced) flags.insert(flags.end(), {extra[i], extra[i + 1]});
  }
  workers_.erase(name);
  workers_.emplace(name, Program("quasi-worker", flags, directory_.path() / (name + ".log")));
}

std::vector<std::string> Service::submit(const std::vector<v1::JobSpec>& specs) {
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  for (const auto& spec : specs) *request.add_jobs() = spec;
  v1::SubmitJobsResponse response;
  grpc::Status status;
  wait_for(
      [&] {
        grpc::ClientContext context;
        limit(context);
        status = stub_->SubmitJobs(&context, request, &response);
        return !away(status);
      },
      within(60));
  if (!status.ok()) throw std::runtime_error("submit: " + status.error_message());
  return {response.job_ids().begin(), response.job_ids().end()};
}

v1::Job Service::get(const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  v1::GetJobResponse response;
  grpc::Status status;
  wait_for(
      [&] {
        grpc::ClientContext context;
        limit(context);
        status = stub_->GetJob(&context, request, &response);
        return !away(status);
      },
      within(60));
  if (!status.ok()) throw std::runtime_error("get " + id + ": " + status.error_message());
  return response.job();
}

void Service::cancel(const std::string& id) {
  v1::CancelJobsRequest request;
  request.add_job_ids(id);
  grpc::ClientContext context;
  limit(context);
  v1::CancelJobsResponse response;
  const grpc::Status status = stub_->CancelJobs(&context, request, &response);
  if (!status.ok()) throw std::runtime_error("cancel: " + status.error_message());
}

v1::Job Service::wait(const std::string& id, const std::function<bool(const v1::Job&)>& holds,
                      double seconds) {
  v1::Job job;
  const bool held = wait_for(
      [&] {
        job = get(id);
        return holds(job);
      },
      within(seconds));
  EXPECT_TRUE(held) << "not reached in " << seconds << " s:\n" << job.DebugString();
  return job;
}

v1::Job Service::wait_state(const std::string& id, v1::JobState state, double seconds) {
  return wait(id, [&](const v1::Job& job) { return job.state() == state; }, seconds);
}

v1::Job Service::wait_end(const std::string& id, double seconds) {
  return wait(id, [](const v1::Job& job) { return is_final(job.state()); }, seconds);
}

std::string Service::log_of(const std::string& id) {
  v1::ReadLogsRequest request;
  request.set_job_id(id);
  grpc::ClientContext context;
  limit(context);
  const auto stream = stub_->ReadLogs(&context, request);
  std::string text;
  for (v1::ReadLogsResponse part; stream->Read(&part);) text += part.data();
  return text;
}

bool is_final(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

v1::JobSpec noop() {
  v1::JobSpec spec;
  spec.set_name("noop");
  spec.mutable_test()->mutable_noop();
  return spec;
}

v1::JobSpec sleep_for(double seconds) {
  v1::JobSpec spec;
  spec.set_name("sleep");
  *spec.mutable_test()->mutable_sleep()->mutable_duration() = duration(seconds);
  return spec;
}

v1::JobSpec hang(bool ignore_sigterm) {
  v1::JobSpec spec;
  spec.set_name("hang");
  spec.mutable_test()->mutable_hang()->set_ignore_sigterm(ignore_sigterm);
  return spec;
}

v1::JobSpec checkpointing(std::uint32_t steps, double interval_seconds) {
  v1::JobSpec spec;
  spec.set_name("checkpointing");
  auto* work = spec.mutable_test()->mutable_checkpointing();
  work->set_steps(steps);
  *work->mutable_interval() = duration(interval_seconds);
  return spec;
}

}  // namespace quasi::test
