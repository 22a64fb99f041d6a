// Tests the deletion of jobs, by call and by age: who may be deleted, what is freed, and what
// watchers see.

#include <filesystem>

#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

class Deletion : public Calls {
 protected:
  /// Deletes jobs. @return the status and, in its text, what the server says
  grpc::Status remove(const std::vector<std::string>& ids, const std::string& request_id = "") {
    grpc::ClientContext context;
    limit(context);
    v1::DeleteJobsRequest request;
    request.set_request_id(request_id);
    for (const std::string& id : ids) request.add_job_ids(id);
    request.set_reason("enough");
    v1::DeleteJobsResponse response;
    const grpc::Status status = jobs_->DeleteJobs(&context, request, &response);
    replayed_ = context.GetServerTrailingMetadata().count("quasi-replayed") > 0;
    return status;
  }
  v1::Job get(const std::string& id, grpc::StatusCode expected = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    limit(context);
    v1::GetJobRequest request;
    request.set_job_id(id);
    v1::GetJobResponse response;
    EXPECT_EQ(jobs_->GetJob(&context, request, &response).error_code(), expected);
    return response.job();
  }
  int listed() {
    grpc::ClientContext context;
    limit(context);
    v1::ListJobsResponse response;
    EXPECT_TRUE(jobs_->ListJobs(&context, {}, &response).ok());
    return response.jobs_size();
  }
  template <class Request, class Response>
  Response act(grpc::Status (v1::WorkerService::Stub::*call)(grpc::ClientContext*, const Request&,
                                                             Response*),
               const Request& request) {
    grpc::ClientContext context;
    limit(context);
    Response response;
    const grpc::Status status = (workers_.get()->*call)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  /// Runs a job to its success with one artefact of `size` bytes and a line of log, as a worker
  /// does. @return the job's id
  std::string succeed(std::size_t size) {
    const std::string id = submit();
    const std::string worker = "w_" + std::string(26, '1'), incarnation = wire::make_uuid();
    v1::RegisterRequest registration;
    registration.set_worker_id(worker);
    registration.set_incarnation(incarnation);
    registration.set_name("node7");
    registration.set_version("0.1.0");
    registration.add_kinds("test");
    v1::Device& device = *registration.add_devices();
    device.set_id("cpu");
    device.set_backend(v1::DEVICE_BACKEND_CPU);
    device.set_memory_bytes(1U << 30);
    device.set_slots(1);
    act(&v1::WorkerService::Stub::Register, registration);
    v1::AcquireLeasesRequest acquisition;
    acquisition.set_worker_id(worker);
    acquisition.set_incarnation(incarnation);
    acquisition.set_acquire_id(wire::make_uuid());
    acquisition.add_slots()->set_device_id("cpu");
    const auto grant = act(&v1::WorkerService::Stub::AcquireLeases, acquisition).grants(0);
    v1::StartAttemptRequest begin;
    *begin.mutable_attempt() = grant.attempt();
    act(&v1::WorkerService::Stub::StartAttempt, begin);
    v1::AppendLogRequest line;
    *line.mutable_attempt() = grant.attempt();
    line.set_data("one line\n");
    act(&v1::WorkerService::Stub::AppendLog, line);
    const auto file = wire::digest_file(write_file("result", size));
    EXPECT_TRUE(wire::upload_file(channel_, root_ + "/result", file.digest, file.size_bytes).ok());
    v1::CompleteAttemptRequest report;
    *report.mutable_attempt() = grant.attempt();
    v1::Artifact& artifact = *report.mutable_succeeded()->add_artifacts();
    artifact.set_name("result.h5");
    artifact.set_digest(file.digest);
    artifact.set_size_bytes(file.size_bytes);
    act(&v1::WorkerService::Stub::CompleteAttempt, report);
    return id;
  }
  std::string log_of(const std::string& id) {
    grpc::ClientContext context;
    limit(context);
    v1::ReadLogsRequest request;
    request.set_job_id(id);
    const auto reader = jobs_->ReadLogs(&context, request);
    v1::ReadLogsResponse part;
    std::string text;
    while (reader->Read(&part)) text += part.data();
    EXPECT_TRUE(reader->Finish().ok());
    return text;
  }
  /// Number of files below a folder of the data directory.
  std::ptrdiff_t files_in(const std::string& folder) const {
    std::ptrdiff_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_ + "/data/" + folder))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  void restart_with(const RetentionOptions& retention) {
    server_.reset();
    options_.retention = retention;
    options_.garbage_interval_ms = 20;
    start();
  }
};

TEST_F(Deletion, OnlyEndedJobsGoAndAllOrNone) {
  const std::string live = submit(), ended = submit();
  cancel(ended);
  const grpc::Status status = remove({ended, live});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(wire::reason_of(status), wire::reason::kWrongState);
  EXPECT_NE(status.error_message().find("cancel it first"), std::string::npos);
  EXPECT_EQ(get(ended).state(), v1::JOB_STATE_CANCELLED);

  const std::string request = wire::make_uuid();
  EXPECT_TRUE(remove({ended, ended}, request).ok());
  EXPECT_FALSE(replayed_);
  get(ended, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(listed(), 1);
  // A client that did not get the answer repeats its request; another request finds no job.
  EXPECT_TRUE(remove({ended, ended}, request).ok());
  EXPECT_TRUE(replayed_);
  EXPECT_EQ(remove({ended}).error_code(), grpc::StatusCode::NOT_FOUND);
  server_.reset();
  start();
  get(ended, grpc::StatusCode::NOT_FOUND);
  get(live);
}

// The watcher of a job sees its deletion as the job's last event, with the next number.
TEST_F(Deletion, AWatcherSeesItAsTheLastEvent) {
  const std::string id = submit();
  v1::WatchJobsRequest request;
  request.mutable_filter()->add_job_ids(id);
  request.set_snapshot(true);
  grpc::ClientContext context;
  limit(context);
  const auto reader = jobs_->WatchJobs(&context, request);
  // The snapshot shows that the watch has begun. Before that the deletion could come first.
  v1::WatchEvent event;
  ASSERT_TRUE(reader->Read(&event));
  cancel(id);
  ASSERT_TRUE(remove({id}).ok());
  std::uint64_t newest = 0;
  while (reader->Read(&event) && !event.state_changed().deleted())
    newest = std::max(newest, event.job_seq());
  EXPECT_TRUE(event.state_changed().deleted());
  EXPECT_EQ(event.job_seq(), newest + 1);
  EXPECT_EQ(event.state_changed().to(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(event.state_changed().message(), "enough");
  context.TryCancel();
}

// The artefact of two jobs goes with the second one, and the log of each job with the job.
TEST_F(Deletion, FilesGoWithTheLastJobThatNeedsThem) {
  // A result must not be collected between its upload and the report of its job.
  constexpr std::int64_t kGraceMs = 3'000;
  restart_with({.blob_grace_ms = kGraceMs});
  const std::string first = succeed(70'000), second = succeed(70'000);
  ASSERT_EQ(get(second).artifacts_size(), 1);
  EXPECT_EQ(files_in("blobs"), 1);
  EXPECT_EQ(log_of(second), "one line\n");
  EXPECT_TRUE(wait_for([&] { return files_in("logs") == 2; })) << "finished logs are not folded";
  EXPECT_EQ(log_of(second), "one line\n");
  ASSERT_TRUE(remove({first}).ok());
  EXPECT_TRUE(wait_for([&] { return files_in("logs") == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(kGraceMs + 200));
  EXPECT_EQ(files_in("blobs"), 1) << "the second job needs it";
  grpc::ClientContext context;
  limit(context);
  v1::ReadLogsRequest log;
  log.set_job_id(first);
  v1::ReadLogsResponse part;
  const auto reader = jobs_->ReadLogs(&context, log);
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(remove({second}).ok());
  EXPECT_TRUE(wait_for([&] { return files_in("blobs") == 0 && files_in("logs") == 0; }));
}

TEST_F(Deletion, RetentionDeletesWhatEndedLongAgo) {
  restart_with({.result_retention_ms = 1'500});
  const std::string live = submit();
  cancel(submit());
  EXPECT_EQ(listed(), 2);
  EXPECT_TRUE(wait_for([&] { return listed() == 1; }));
  get(live);
}

// Results beyond the bytes of a user go, the oldest first, with their files. The job that waits
// stays.
TEST_F(Deletion, TheOldestResultsGoWhenAUserExceedsTheirBytes) {
  restart_with({.blob_grace_ms = 1'000, .user_result_bytes = 150'000, .result_grace_ms = 0});
  const std::string first = succeed(70'000), second = succeed(71'000), third = succeed(72'000);
  const std::string live = submit();
  EXPECT_TRUE(wait_for([&] { return listed() == 3; }));
  get(first, grpc::StatusCode::NOT_FOUND);
  for (const std::string& id : {second, third, live}) get(id);
  EXPECT_TRUE(wait_for([&] { return files_in("blobs") == 2; }));
}

}  // namespace
}  // namespace quasi::server
