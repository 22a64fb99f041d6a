// Tests that open streams and waiting workers end when their caller loses the right to them.

#include <filesystem>
#include <functional>
#include <thread>

#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

/// A server on which no open call ends or wakes by itself within the time of a test.
class LostRights : public Access {
 protected:
  LostRights() { restart(128, 0); }
  void restart(std::int64_t streams, std::int64_t upload_bytes_per_second) {
    server_.reset();
    options_.api.bookmark_ms = options_.api.upload_stream_idle_ms = 600'000;
    options_.api.streams_per_principal = streams;
    options_.api.upload_bytes_per_second = upload_bytes_per_second;
    start();
  }
  static void admit(grpc::ClientContext& context, const Person& person) {
    person.admit(context);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  }
  /// Ends a token after a time.
  void revoke_in(std::int32_t ms, const std::string& token) {
    grpc::ClientContext context;
    v1::RevokeTokenRequest request;
    request.set_key_id(token.substr(4, 12));
    request.mutable_delay()->set_nanos(ms * 1'000'000);
    v1::RevokeTokenResponse response;
    EXPECT_TRUE(
        v1::AdminService::NewStub(channel_)->RevokeToken(&context, request, &response).ok());
  }
  void disable(const std::string& name) {
    grpc::ClientContext context;
    v1::SavePrincipalRequest request;
    request.mutable_principal()->set_name(name);
    request.mutable_principal()->set_role(v1::ROLE_USER);
    request.mutable_principal()->set_tenant("phonons");
    request.mutable_principal()->set_disabled(true);
    v1::SavePrincipalResponse response;
    EXPECT_TRUE(
        v1::AdminService::NewStub(channel_)->SavePrincipal(&context, request, &response).ok());
  }
  Person person(const std::string& token) { return Person(wire::open_channel(tcp()), token); }
  /// Opens a watch as this person, and returns its status after `change`.
  grpc::Status watch_until(const Person& watcher, const std::function<void()>& change) {
    grpc::ClientContext context;
    admit(context, watcher);
    v1::WatchJobsRequest request;
    request.set_snapshot(true);
    const auto watch = watcher.jobs().WatchJobs(&context, request);
    v1::WatchEvent event;
    while (watch->Read(&event) && !event.has_bookmark()) continue;
    EXPECT_TRUE(event.has_bookmark());
    change();
    while (watch->Read(&event)) continue;
    return watch->Finish();
  }
  static void expect_end(const grpc::Status& status, const char* reason, const char* words) {
    EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED) << status.error_message();
    EXPECT_EQ(wire::reason_of(status), reason);
    EXPECT_NE(status.error_message().find(words), std::string::npos) << status.error_message();
  }
};

TEST_F(LostRights, AWatchEndsWithItsToken) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const grpc::Status status = watch_until(person(token), [&] { revoke(token); });
  expect_end(status, "TOKEN_INVALID", "was revoked while the call was open");
  EXPECT_NE(status.error_message().find(token.substr(4, 12) + " of ada"), std::string::npos);
  EXPECT_FALSE(wire::token_ran_out(status)) << "another call would be in vain";
}

TEST_F(LostRights, AWatchEndsWhenItsTokenExpires) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const grpc::Status status = watch_until(person(token), [&] { revoke_in(200, token); });
  expect_end(status, "TOKEN_EXPIRED", "expired while the call was open");
  EXPECT_TRUE(wire::token_ran_out(status)) << "a newer token may go on";
  EXPECT_FALSE(wire::token_ran_out(capabilities(token))) << "a call was never admitted";
}

TEST_F(LostRights, AWatchEndsWithItsPrincipal) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  expect_end(watch_until(person(token), [&] { disable("ada"); }), "TOKEN_INVALID",
             "ada was disabled while the call was open");
}

// An operator sees the jobs of all. A watch of a user who is no operator any more would go on with
// the old rights.
TEST_F(LostRights, AWatchEndsWhenItsRightsChange) {
  const std::string token = token_of("ada", v1::ROLE_OPERATOR);
  const grpc::Status status =
      watch_until(person(token), [&] { EXPECT_TRUE(save("ada", v1::ROLE_USER).ok()); });
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(wire::reason_of(status), "RIGHTS_CHANGED");
}

// The tokens of others and other changes of the tables end nothing.
TEST_F(LostRights, AWatchOutlivesTheTokensOfOthers) {
  const std::string own = token_of("ada", v1::ROLE_USER);
  const std::string second = token_of("ada", v1::ROLE_USER);
  const std::string other = token_of("bo", v1::ROLE_USER);
  const Person ada = person(own);
  const grpc::Status status = watch_until(ada, [&] {
    revoke(second);
    revoke(other);
    EXPECT_TRUE(save("ada", v1::ROLE_USER).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // three ticks
    EXPECT_EQ(ada.submit().substr(0, 2), "j_");
    revoke(own);
  });
  expect_end(status, "TOKEN_INVALID", "was revoked");
}

TEST_F(LostRights, AFollowedLogEndsWithItsToken) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const Person ada = person(token);
  grpc::ClientContext context;
  admit(context, ada);
  v1::ReadLogsRequest request;
  request.set_job_id(ada.submit());
  request.set_follow(true);
  const std::uint64_t reads = server_->reads();
  const auto log = ada.jobs().ReadLogs(&context, request);
  EXPECT_TRUE(wait_for([&] { return server_->reads() > reads; })) << "the stream is open";
  revoke(token);
  v1::ReadLogsResponse part;
  EXPECT_FALSE(log->Read(&part));
  expect_end(log->Finish(), "TOKEN_INVALID", "was revoked");
}

// A worker that waits for a job gets none once its token is revoked.
TEST_F(LostRights, AWaitingWorkerGetsNoJob) {
  const std::string token = token_of("willi", v1::ROLE_WORKER);
  const Person willi = person(token);
  v1::RegisterRequest hello;
  hello.set_worker_id("w_" + std::string(26, 'A'));
  hello.set_incarnation(wire::make_uuid());
  hello.set_version("0.1.0");
  hello.add_kinds("test");
  v1::Device& device = *hello.add_devices();
  device.set_id("cpu0");
  device.set_backend(v1::DEVICE_BACKEND_CPU);
  device.set_slots(1);
  v1::RegisterResponse known;
  ASSERT_TRUE(willi.call(willi.workers(), &v1::WorkerService::Stub::Register, hello, &known).ok());
  grpc::ClientContext context;
  admit(context, willi);
  v1::AcquireLeasesRequest request;
  request.set_worker_id(hello.worker_id());
  request.set_incarnation(hello.incarnation());
  request.set_acquire_id(wire::make_uuid());
  request.add_slots()->set_device_id("cpu0");
  request.mutable_wait()->set_seconds(20);
  v1::AcquireLeasesResponse response;
  grpc::Status status;
  std::thread waiting(
      [&] { status = willi.workers().AcquireLeases(&context, request, &response); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the call waits by now
  revoke(token);
  submit();
  waiting.join();
  expect_end(status, "TOKEN_INVALID", "was revoked");
  EXPECT_EQ(response.grants_size(), 0);
}

constexpr std::size_t kUploadBytes = 100'000;

/// An upload of 100,000 bytes of which the first ones were sent.
struct BegunUpload {
  BegunUpload(const Person& person, std::size_t bytes) {
    person.admit(context);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
    stream = person.blobs().WriteBlob(&context, &response);
    v1::WriteBlobRequest message;
    message.mutable_header()->set_upload_id(id);
    message.mutable_header()->set_digest(wire::sha256_hex(std::string(kUploadBytes, 'a')));
    message.mutable_header()->set_size_bytes(kUploadBytes);
    EXPECT_TRUE(stream->Write(message));
    message.mutable_data()->set_data(std::string(bytes, 'a'));
    EXPECT_TRUE(stream->Write(message));
  }
  const std::string id = wire::make_uuid();
  grpc::ClientContext context;
  v1::WriteBlobResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::WriteBlobRequest>> stream;
};

/// Number of bytes that the server has of unfinished uploads.
std::uint64_t staged_bytes(const std::string& root) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/data/staging"))
    bytes += entry.file_size();
  return bytes;
}

// The bytes that came before the end are kept, so that a newer token goes on from there.
TEST_F(LostRights, AnUploadThatWaitsEndsAndKeepsItsBytes) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const Person ada = person(token);
  BegunUpload upload(ada, 60'000);
  EXPECT_TRUE(wait_for([&] { return staged_bytes(root_) == 60'000; }));
  revoke(token);
  expect_end(upload.stream->Finish(), "TOKEN_INVALID", "was revoked");
  const Person newer = person(token_of("ada", v1::ROLE_USER));
  v1::QueryUploadRequest query;
  query.set_upload_id(upload.id);
  v1::QueryUploadResponse known;
  const grpc::Status status =
      newer.call(newer.blobs(), &v1::BlobService::Stub::QueryUpload, query, &known);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(known.committed_bytes(), 60'000);
}

// At 100 bytes a second, 20,000 bytes make the stream wait for more than three minutes.
TEST_F(LostRights, AnUploadThatIsSlowedDownEnds) {
  restart(128, 100);
  const std::string token = token_of("ada", v1::ROLE_USER);
  const Person ada = person(token);
  BegunUpload upload(ada, 20'000);
  EXPECT_TRUE(wait_for([&] { return staged_bytes(root_) == 20'000; }));
  revoke(token);
  expect_end(upload.stream->Finish(), "TOKEN_INVALID", "was revoked");
}

/// A file for downloads, larger than the buffers between server and reader.
std::string large_file() { return std::string(32U << 20, 'x'); }

TEST_F(LostRights, ADownloadEndsWithItsToken) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const Person ada = person(token);
  grpc::ClientContext context;
  admit(context, ada);
  v1::ReadBlobRequest request;
  request.set_digest(ada.send(large_file()));
  const auto stream = ada.blobs().ReadBlob(&context, request);
  v1::ReadBlobResponse chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  revoke(token);
  std::size_t bytes = chunk.data().size();
  while (stream->Read(&chunk)) bytes += chunk.data().size();
  expect_end(stream->Finish(), "TOKEN_INVALID", "was revoked");
  EXPECT_LT(bytes, 16U << 20) << "no more than the buffers held came after the end of the token";
}

// A reader that takes nothing cannot be told why its stream ended. The stream ends all the same, so
// that another has its place.
TEST_F(LostRights, ADownloadThatNobodyTakesEnds) {
  restart(1, 0);
  const std::string token = token_of("ada", v1::ROLE_USER);
  const Person ada = person(token);
  const std::string digest = ada.send(large_file());
  grpc::ClientContext context;
  admit(context, ada);
  v1::ReadBlobRequest request;
  request.set_digest(digest);
  const auto stream = ada.blobs().ReadBlob(&context, request);
  v1::ReadBlobResponse chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  const Person newer = person(token_of("ada", v1::ROLE_USER));
  EXPECT_EQ(newer.read(digest).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the buffers are full by now
  revoke(token);
  EXPECT_TRUE(wait_for([&] { return newer.read(digest).ok(); }));
  while (stream->Read(&chunk)) continue;
  // Without the server's doing, the call would end at its own deadline.
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
}

}  // namespace
}  // namespace quasi::server
