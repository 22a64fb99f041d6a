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
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
}

bool away(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

/// Repeats a call until the server answers. @throws std::runtime_error with a refusal.
void repeat(const std::string& what,
            const std::function<grpc::Status(grpc::ClientContext&)>& call) {
  grpc::Status status;
  wait_for([&] {
    grpc::ClientContext context;
    limit(context);
    status = call(context);
    return !away(status);
  });
  if (!status.ok()) throw std::runtime_error(what + ": " + status.error_message());
}

/// Joins flags given in pairs. A flag of the test replaces the default one, because a repeated flag
/// is refused.
std::vector<std::string> merged_flags(std::vector<std::string> flags,
                                      const std::vector<std::string>& own) {
  for (std::size_t i = 0; i + 1 < own.size(); i += 2) {
    bool replaced = false;
    for (std::size_t j = 0; j + 1 < flags.size(); j += 2)
      if (flags[j] == own[i]) {
        flags[j + 1] = own[i + 1];
        replaced = true;
      }
    if (!replaced) flags.insert(flags.end(), {own[i], own[i + 1]});
  }
  return flags;
}

}  // namespace

Service::Service(std::vector<std::string> server_flags)
    : server_flags_(std::move(server_flags)),
      channel_(wire::open_channel(address())),
      stub_(v1::JobService::NewStub(channel_)) {}

void Service::start_server() {
  std::vector<std::string> flags{"--data-directory",
                                 (directory_.path() / "data").string(),
                                 "--listen",
                                 address(),
                                 "--enable-test-work",
                                 "true",
                                 "--lease-ttl",
                                 "600",
                                 "--heartbeat-interval",
                                 "0.5",
                                 "--requeue-delay",
                                 "0.2",
                                 "--retry-back-off",
                                 "0.05",
                                 "--restart-grace",
                                 "1",
                                 "--result-cache",
                                 "off"};
  server_ = std::make_unique<Program>("quasi-server", merged_flags(flags, server_flags_),
                                      directory_.path() / "server.log");
  bool up = false;
  wait_for([&] {
    grpc::ClientContext context;
    limit(context);
    v1::GetCapabilitiesResponse response;
    up = stub_->GetCapabilities(&context, {}, &response).ok();
    return up || is_gone(server_->pid());
  });
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
  std::vector<std::string> flags{"--server",
                                 address(),
                                 "--state-directory",
                                 worker_state(name).string(),
                                 "--name",
                                 name,
                                 "--devices",
                                 "none",
                                 "--threads",
                                 "1",
                                 "--cancel-grace-s",
                                 "0.5",
                                 "--terminate-grace-s",
                                 "0.5",
                                 "--drain-timeout-s",
                                 "1",
                                 "--start-timeout-s",
                                 "600",
                                 "--min-free-scratch-bytes",
                                 "0"};
  workers_.erase(name);
  workers_.emplace(name, Program("quasi-worker", merged_flags(flags, extra),
                                 directory_.path() / (name + ".log")));
}

std::vector<std::string> Service::submit(const std::vector<v1::JobSpec>& specs,
                                         v1::JobService::Stub& stub) {
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  for (const auto& spec : specs) *request.add_jobs() = spec;
  v1::SubmitJobsResponse response;
  repeat("submit", [&](grpc::ClientContext& context) {
    return stub.SubmitJobs(&context, request, &response);
  });
  return {response.job_ids().begin(), response.job_ids().end()};
}

v1::Job Service::get(const std::string& id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  v1::GetJobResponse response;
  repeat("get " + id,
         [&](grpc::ClientContext& context) { return stub_->GetJob(&context, request, &response); });
  return response.job();
}

void Service::cancel(const std::string& id) {
  v1::CancelJobsRequest request;
  request.add_job_ids(id);
  v1::CancelJobsResponse response;
  repeat("cancel", [&](grpc::ClientContext& context) {
    return stub_->CancelJobs(&context, request, &response);
  });
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

v1::Job Service::wait_state(const std::string& id, v1::JobState state) {
  return wait(id, [&](const v1::Job& job) { return job.state() == state; });
}

v1::Job Service::wait_end(const std::string& id) {
  return wait(id, [](const v1::Job& job) { return is_final(job.state()); });
}

std::string Service::log_of(const std::string& id, std::uint32_t attempt) {
  v1::ReadLogsRequest request;
  request.set_job_id(id);
  request.set_attempt(attempt);
  std::string text;
  repeat("log of " + id, [&](grpc::ClientContext& context) {
    text.clear();
    const auto stream = stub_->ReadLogs(&context, request);
    for (v1::ReadLogsResponse part; stream->Read(&part);) text += part.data();
    return stream->Finish();
  });
  return text;
}

std::string Service::artifact_text(const v1::Job& job, const std::string& name) {
  const auto path = directory_.path() / (job.id() + "-" + name);
  for (const auto& artifact : job.artifacts()) {
    if (artifact.name() != name) continue;
    const grpc::Status status =
        wire::download_file(channel_, artifact.digest(), artifact.size_bytes(), path);
    if (!status.ok()) throw std::runtime_error("fetch " + name + ": " + status.error_message());
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  throw std::runtime_error(job.id() + " left no " + name);
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
