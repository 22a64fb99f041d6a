// Tests the client against a server that sends false answers and against one that has ended.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "client/commands/fetch.hpp"
#include "client/commands/jobs.hpp"
#include "client/commands/logs.hpp"
#include "client/commands/watch.hpp"
#include "client/session/connection.hpp"
#include "client/session/follow.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "quasi/v1/job_service.grpc.pb.h"
#include "tests/service/support/client_files.hpp"

namespace quasi::client {
namespace {

constexpr char kFullId[] = "j_01J9QK3V8NXW2R5T7Y9A1C3E5G";

/// Ends a call whose token has expired. @param admitted  after it was admitted
grpc::Status token_expired(bool admitted) {
  wire::ErrorDetails details{.reason = std::string(wire::reason::kTokenExpired)};
  if (admitted) details.metadata["admitted"] = "true";
  return wire::make_status(grpc::StatusCode::UNAUTHENTICATED, "the token has expired", details);
}

/// A server whose answers the test sets.
class Told : public v1::JobService::Service {
 public:
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*,
                      v1::GetJobResponse* response) override {
    response->mutable_job()->set_id(id);
    response->mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
    return grpc::Status::OK;
  }
  grpc::Status ListArtifacts(grpc::ServerContext*, const v1::ListArtifactsRequest*,
                             v1::ListArtifactsResponse* response) override {
    v1::Artifact& artifact = *response->add_artifacts();
    artifact.set_name("authorized_keys");
    artifact.set_digest(wire::sha256_hex("content"));
    artifact.set_size_bytes(7);
    return grpc::Status::OK;
  }
  grpc::Status ReadLogs(grpc::ServerContext*, const v1::ReadLogsRequest*,
                        grpc::ServerWriter<v1::ReadLogsResponse>* writer) override {
    v1::ReadLogsResponse response;
    response.set_attempt(1);
    std::uint64_t offset = 0;
    for (const std::string& part : log_parts) {
      response.set_offset(offset);
      response.set_data(part);
      offset += part.size();
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

  /// The first watch ends with `watch_end`, and the second shows that the job has succeeded.
  grpc::Status WatchJobs(grpc::ServerContext* context, const v1::WatchJobsRequest* request,
                         grpc::ServerWriter<v1::WatchEvent>* writer) override {
    v1::WatchEvent event;
    event.set_job_id(kFullId);
    event.set_resume_token("after " + request->resume_token());
    if (priority != 0) {
      event.mutable_priority()->set_to(priority);
      writer->Write(event);
    }
    event.mutable_snapshot()->set_id(kFullId);
    event.mutable_snapshot()->set_state(++watches == 1 ? v1::JOB_STATE_RUNNING
                                                       : v1::JOB_STATE_SUCCEEDED);
    writer->Write(event);
    if (watches == 1) return watch_end;
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return grpc::Status::CANCELLED;
  }

  std::string id = kFullId;
  std::vector<std::string> log_parts;
  grpc::Status watch_end;
  int watches = 0;
  std::int32_t priority = 0;  ///< of the job, whose watches begin with its change from 0
};

class OneBlob : public v1::BlobService::Service {
 public:
  grpc::Status ReadBlob(grpc::ServerContext*, const v1::ReadBlobRequest* request,
                        grpc::ServerWriter<v1::ReadBlobResponse>* writer) override {
    v1::ReadBlobResponse response;
    response.set_offset(request->offset());
    response.set_data(std::string("content").substr(request->offset(), most_bytes));
    writer->Write(response);
    return response.data().size() < most_bytes ? grpc::Status::OK : end;
  }

  std::size_t most_bytes = 100;  ///< of one call, which then ends with `end`
  grpc::Status end;
};

class Answers : public ClientFiles {
 protected:
  Answers() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path("s").string(), grpc::InsecureServerCredentials());
    builder.RegisterService(&jobs_);
    builder.RegisterService(&blobs_);
    server_ = builder.BuildAndStart();
    fs::create_directories(path("here"));
    fs::current_path(path("here"));
  }
  ~Answers() override { fs::current_path("/"); }

  Told jobs_;
  OneBlob blobs_;
  std::unique_ptr<grpc::Server> server_;
  Console console_{Format::kJsonl, Terminal(), true, false};
  Config config_;
  State state_{path("state")};
  Connection connection_{"unix:" + path("s").string(), 10.0};
  Session session_{.console = console_, .config = config_, .state = state_, .server = connection_};
};

// The id in an answer becomes the name of a folder, so it must be a valid id.
TEST_F(Answers, AnIdThatLeadsElsewhereIsRefused) {
  for (const char* id : {"../escaped", "/abs/escaped", "", "j_", ".."}) {
    jobs_.id = id;
    const Failure failure =
        failure_in([&] { fetch(session_, FetchOptions{.jobs = {"j_01J9QK"}, .directory = {}}); });
    EXPECT_EQ(failure.status, ExitStatus::kDataIntegrity) << id;
    EXPECT_FALSE(fs::exists(path("escaped"))) << id;
    EXPECT_TRUE(fs::is_empty(path("here"))) << id;
  }
  jobs_.id = std::string("j_01J9QK") + std::string(kFullId).substr(8);
  fetch(session_, FetchOptions{.jobs = {"j_01J9QK"}, .directory = {}});
  EXPECT_TRUE(fs::exists(path("here") / kFullId / "authorized_keys"));
}

// A symbolic link at the path of the download is not followed.
TEST_F(Answers, ALinkInTheDownloadsPlaceIsNotFollowed) {
  file("precious", "precious");
  fs::create_symlink(path("precious"), path("here/authorized_keys.part"));
  const Failure failure = failure_in(
      [&] { fetch(session_, FetchOptions{.jobs = {kFullId}, .directory = path("here")}); });
  EXPECT_EQ(failure.status, ExitStatus::kLocalFile);
  std::ifstream in(path("precious"));
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "precious");
}

// A token of a Unix socket lasts for 15 minutes, and a token of a file is renewed. Longer calls go
// on with the newest one.
TEST_F(Answers, CallsGoOnWithANewerToken) {
  jobs_.watch_end = token_expired(true);
  std::map<std::string, v1::Job> jobs;
  int away = 0;
  const FollowOptions options{
      .job_ids = {kFullId}, .limit_s = 100.0, .on_away = [&](const std::string&) { ++away; }};
  EXPECT_EQ(follow(connection_, options, jobs), FollowEnd::kDone);
  EXPECT_EQ(jobs_.watches, 2);
  EXPECT_EQ(away, 0) << "the user is told of no loss";

  blobs_.most_bytes = 3;
  blobs_.end = token_expired(true);
  fetch(session_, FetchOptions{.jobs = {kFullId}, .directory = path("here")});
  EXPECT_EQ(fs::file_size(path("here/authorized_keys")), 7U);
}

TEST_F(Answers, AChangedPriorityIsToldInASentence) {
  jobs_.priority = 5;
  jobs_.watch_end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
  Console console(Format::kJsonl, Terminal(), false, false);
  Session session{.console = console, .config = config_, .state = state_, .server = connection_};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  follow_and_report(session, {kFullId}, Until::kAll, Narration::kShown, {}, "");
  console.flush();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("  the priority is 5 now; it was 0\n"), std::string::npos) << told;
  const std::string events = testing::internal::GetCapturedStdout();
  const auto first = nlohmann::json::parse(events.substr(0, events.find('\n')));
  EXPECT_EQ(first["event"], "priority") << first;
  EXPECT_EQ(first["from"], 0);
  EXPECT_EQ(first["to"], 5);
}

// A call that is not admitted at all is not repeated.
TEST_F(Answers, AnExpiredTokenEndsACall) {
  jobs_.watch_end = token_expired(false);
  std::map<std::string, v1::Job> jobs;
  const FollowOptions options{.job_ids = {kFullId}, .limit_s = 100.0};
  EXPECT_EQ(failure_in([&] { follow(connection_, options, jobs); }).status,
            ExitStatus::kNotAllowed);
  EXPECT_EQ(jobs_.watches, 1);
  blobs_.most_bytes = 3;
  blobs_.end = token_expired(false);
  EXPECT_EQ(failure_in([&] {
              fetch(session_, FetchOptions{.jobs = {kFullId}, .directory = path("here")});
            }).status,
            ExitStatus::kNotAllowed);
}

// A connection that breaks during a call gives CANCELLED without details, which means that there is
// no server.
TEST_F(Answers, ACallWhoseServerDiedSaysSo) {
  const Failure failure =
      failure_of(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"), "host:1");
  EXPECT_EQ(failure.status, ExitStatus::kUnreachable);
  EXPECT_SAYS(failure, "no answer from a server at host:1");
  EXPECT_NE(failure.remedy, "");
}

// Parts of a log end at the page boundaries of the server, which may lie within a character.
TEST_F(Answers, ALogIsCutBetweenCharacters) {
  jobs_.log_parts = {"\xce\xba = 1\n\xce", "\xba = 2\n", "end \xe2\x88", "\xff"};
  testing::internal::CaptureStdout();
  logs(session_, {.job = kFullId});
  console_.flush();
  std::istringstream lines(testing::internal::GetCapturedStdout());
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    EXPECT_EQ(record.at("offset").get<std::size_t>() <= 30, true);
    text += record.at("text").get<std::string>();
  }
  EXPECT_TRUE(text.starts_with("\xce\xba = 1\n\xce\xba = 2\nend ")) << text;
}

// A job that waits again after its worker released it is not shown as running.
TEST_F(Answers, AJobThatWaitsDoesNotGoOnRunning) {
  v1::Job job;
  job.set_id(kFullId);
  job.set_state(v1::JOB_STATE_QUEUED);
  job.mutable_created()->set_seconds(1'000);
  job.mutable_started()->set_seconds(2'000);
  const Console table(Format::kTable, Terminal(), true, false);
  const std::string soon = jobs_table(table, {job}, 3'000'000);
  job.clear_started();
  EXPECT_EQ(soon, jobs_table(table, {job}, 3'000'000)) << "a time since its start is shown";
  job.mutable_started()->set_seconds(2'000);
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_NE(jobs_table(table, {job}, 3'000'000).find("16 min 40 s"), std::string::npos)
      << jobs_table(table, {job}, 3'000'000);
}

}  // namespace
}  // namespace quasi::client
