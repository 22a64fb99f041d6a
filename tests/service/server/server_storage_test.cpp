// Tests the server's disk: announced sizes, staged bytes, idle uploads, locks, sockets and logs.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "server/api/bind.hpp"
#include "server/options_table.hpp"
#include "server/store/sqlite.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class Storage : public Calls {
 protected:
  void restart_with(const std::function<void(ServerOptions&)>& change) {
    server_.reset();
    change(options_);
    start();
  }
  std::set<std::string> staged() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.data_directory + "/staging"))
      names.insert(entry.path().filename());
    return names;
  }

  /// One WriteBlob stream.
  struct Upload {
    Upload(v1::BlobService::Stub& stub, std::uint64_t size_bytes) {
      limit(context);
      stream = stub.WriteBlob(&context, &response);
      v1::WriteBlobRequest request;
      request.mutable_header()->set_digest(wire::sha256_hex(wire::make_uuid()));
      request.mutable_header()->set_size_bytes(size_bytes);
      request.mutable_header()->set_upload_id(wire::make_uuid());
      id = request.header().upload_id();
      stream->Write(request);
    }
    bool write(std::uint64_t offset, std::size_t size) {
      v1::WriteBlobRequest request;
      request.mutable_data()->set_offset(offset);
      request.mutable_data()->set_data(std::string(size, 'x'));
      return stream->Write(request);
    }
    grpc::Status finish() {
      stream->WritesDone();
      return stream->Finish();
    }
    grpc::ClientContext context;
    v1::WriteBlobResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::WriteBlobRequest>> stream;
    std::string id;
  };
};

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// An upload that the disk cannot hold is refused at its header. All open uploads count against the
// free space.
TEST_F(Storage, AnUploadLargerThanTheDiskIsRefusedAtItsHeader) {
  const auto free_bytes = fs::space(root_).available;
  if (free_bytes < 20 * kGiB) GTEST_SKIP() << "needs 20 GiB of free space to leave untouched";
  restart_with([&](ServerOptions& options) {
    options.api.storage_low_bytes = static_cast<std::int64_t>(free_bytes - 16 * kGiB);
  });
  const grpc::Status refused = Upload(*blobs_, 60 * kGiB).finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_EQ(wire::reason_of(refused), wire::reason::kStorageLow);

  Upload first(*blobs_, 12 * kGiB);
  ASSERT_TRUE(first.write(0, 10));
  ASSERT_TRUE(wait_for([&] { return staged().contains(first.id); }));
  const grpc::Status second = Upload(*blobs_, 12 * kGiB).finish();
  EXPECT_EQ(wire::reason_of(second), wire::reason::kStorageLow) << second.error_message();
  first.context.TryCancel();
}

// The share of the disk that stays free is a key of its own. An operator of a large disk sets it to
// 0, so that the bytes of `storage_low_bytes` count alone.
TEST_F(Storage, TheShareOfTheDiskToKeepFreeIsAKey) {
  const auto set_share = [](const std::string& share) {
    return [share](ServerOptions& options) {
      for (const Entry& entry : entries())
        if (entry.key == "storage_low_share") entry.set(options, share);
    };
  };
  const auto submit_once = [&] {
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_jobs()->mutable_test()->mutable_noop();
    v1::SubmitJobsResponse response;
    return jobs_->SubmitJobs(&context, request, &response);
  };
  restart_with(set_share("1"));
  EXPECT_TRUE(
      wait_for([&] { return wire::reason_of(submit_once()) == wire::reason::kStorageLow; }));
  restart_with(set_share("0"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1'200));  // one look at the disk
  EXPECT_TRUE(submit_once().ok());
}

// A file of another program fills the disk for a while. New work is refused before the disk is
// full, a running job ends properly, and new work is taken again once the file is gone.
TEST_F(Storage, ANearlyFullDiskRefusesNewWorkUntilSpaceReturns) {
  constexpr std::uint64_t kRoom = 2 * kGiB, kFile = 8 * kGiB;
  const auto free_bytes = fs::space(root_).available;
  if (free_bytes < 20 * kGiB) GTEST_SKIP() << "needs 20 GiB of free space to reserve for a moment";
  restart_with([&](ServerOptions& options) {
    options.api.storage_low_bytes = static_cast<std::int64_t>(free_bytes - kRoom);
  });
  const auto try_to_submit = [&] {
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_jobs()->mutable_test()->mutable_noop();
    v1::SubmitJobsResponse response;
    return jobs_->SubmitJobs(&context, request, &response);
  };
  const std::string id = submit();
  const std::string path = root_ + "/of_another_program";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  const int reserved = ::fallocate(file, 0, 0, static_cast<off_t>(kFile));
  ::close(file);
  if (reserved != 0) GTEST_SKIP() << "this file system reserves no space";
  EXPECT_TRUE(
      wait_for([&] { return wire::reason_of(try_to_submit()) == wire::reason::kStorageLow; }));
  EXPECT_EQ(wire::reason_of(Upload(*blobs_, 1'000).finish()), wire::reason::kStorageLow);
  cancel(id);  // ends work, and is taken
  fs::remove(path);
  EXPECT_TRUE(wait_for([&] { return try_to_submit().ok(); }));
}

// Staged bytes that no row of the database records are removed, however the upload ends.
TEST_F(Storage, AnUploadThatEndsByAnErrorLeavesNoStagedBytes) {
  {
    Upload wrong_offset(*blobs_, 4 << 20);
    wrong_offset.write(0, 1 << 20);
    wrong_offset.write(7, 10);
    EXPECT_EQ(wire::reason_of(wrong_offset.finish()), wire::reason::kOffsetMismatch);
  }
  {
    Upload too_much(*blobs_, 1'000);
    too_much.write(0, 2'000);
    EXPECT_EQ(wire::reason_of(too_much.finish()), wire::reason::kSizeMismatch);
  }
  {
    Upload no_data(*blobs_, 1'000);
    no_data.write(0, 10);
    no_data.stream->Write(v1::WriteBlobRequest());
    EXPECT_EQ(wire::reason_of(no_data.finish()), wire::reason::kFieldInvalid);
  }
  EXPECT_EQ(staged(), std::set<std::string>{});
  // A broken upload is kept for a continuation.
  Upload broken(*blobs_, 1'000);
  broken.write(0, 10);
  EXPECT_EQ(wire::reason_of(broken.finish()), wire::reason::kOffsetMismatch);
  EXPECT_EQ(staged(), std::set<std::string>{broken.id});
}

// An idle server moves acknowledged work from the write-ahead log into the database.
TEST_F(Storage, AnIdleServerFoldsItsLogIntoTheDatabase) {
  submit();
  std::error_code none;
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  const fs::path log = options_.data_directory + "/quasi.db-wal";
  while (fs::file_size(log, none) > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(fs::file_size(log), 0U);
}

// An upload whose caller sends nothing is ended. The bytes sent before are kept.
TEST_F(Storage, AnUploadThatSendsNothingIsEnded) {
  restart_with([](ServerOptions& options) { options.api.upload_stream_idle_ms = 1'000; });
  Upload silent(*blobs_, 1'000);
  ASSERT_TRUE(silent.write(0, 10));
  grpc::ClientContext context;
  limit(context);
  v1::WriteBlobResponse response;
  const auto nothing = blobs_->WriteBlob(&context, &response);
  // Without the server's doing, these calls would end at their own deadline.
  EXPECT_EQ(silent.stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(nothing->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(staged(), std::set<std::string>{silent.id});
}

/// Connects to the server's socket and sends only the beginning of a connection.
class SilentPeer {
 public:
  explicit SilentPeer(const std::string& path) : descriptor_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string preface =
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\x04\0\0\0\0\0", 9);
    EXPECT_EQ(::write(descriptor_, preface.data(), preface.size()),
              static_cast<ssize_t>(preface.size()));
  }
  ~SilentPeer() { ::close(descriptor_); }
  /// Reads without answering. @return true if the server closes the connection in time.
  bool is_hung_up_on(seconds limit) {
    const timeval patience{limit.count(), 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char buffer[4'096];
    ssize_t got = 0;
    while ((got = ::read(descriptor_, buffer, sizeof buffer)) > 0) {
    }
    return got == 0 || errno == ECONNRESET;
  }

 private:
  int descriptor_;
};

// A silent peer does not answer the server's pings, and its connection is closed.
TEST_F(Storage, ASilentConnectionIsLetGo) {
  restart_with([](ServerOptions& options) { options.api.keepalive_ms = 1'000; });
  SilentPeer peer(root_ + "/s");
  EXPECT_TRUE(peer.is_hung_up_on(seconds(60)));
}

// The server waits for another program's lock on the database and then names it. It does not treat
// it as a broken disk.
TEST_F(Storage, AForeignLockRefusesCallsAndEndsNothing) {
  submit();
  {
    Database other(options_.data_directory + "/quasi.db", Database::Mode::kWriter);
    other.execute("BEGIN IMMEDIATE");
    grpc::ClientContext context;
    limit(context);
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_jobs()->mutable_test()->mutable_noop();
    v1::SubmitJobsResponse response;
    // gRPC repeats UNAVAILABLE by itself, so the lock lasts longer than one wait but not longer
    // than two.
    context.set_wait_for_ready(false);
    const grpc::Status status = jobs_->SubmitJobs(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    EXPECT_NE(status.error_message().find("locked"), std::string::npos) << status.error_message();
    other.execute("ROLLBACK");
  }
  EXPECT_NE(submit(), "");
}

// A file at the socket's path is removed only if it is a socket.
TEST_F(Storage, AFileInThePlaceOfTheSocketIsKept) {
  server_.reset();
  const std::string path = root_ + "/notes.txt";
  std::ofstream(path) << "a year of work";
  options_.listen = {"unix:" + path};
  EXPECT_THROW(Server{options_}, BadConfiguration);
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "a year of work");
  // A socket without a listener is stale and is replaced.
  options_.listen = {"unix:" + root_ + "/s"};
  start();
  submit();
}

// With `worker_listen` a worker is served at that address alone and a client at `listen` alone. The
// worker's socket admits its owner alone.
TEST_F(Storage, WorkersAndClientsHaveAddressesOfTheirOwn) {
  restart_with([&](ServerOptions& options) { options.worker_listen = {"unix:" + root_ + "/w"}; });
  const auto register_at = [&](const std::string& address) {
    const auto stub = v1::WorkerService::NewStub(wire::open_channel(address));
    grpc::ClientContext context;
    limit(context);
    v1::RegisterRequest request;
    request.set_worker_id("w_00000000000000000000000001");
    request.set_incarnation(wire::make_uuid());
    request.set_name("mallory");
    request.set_version("1");
    request.set_pool("default");
    v1::RegisterResponse response;
    return stub->Register(&context, request, &response);
  };
  const auto find_blob_at = [&](const std::string& address) {
    const auto stub = v1::BlobService::NewStub(wire::open_channel(address));
    grpc::ClientContext context;
    limit(context);
    v1::FindMissingBlobsRequest request;
    request.add_digests(std::string(64, 'a'));
    v1::FindMissingBlobsResponse response;
    return stub->FindMissingBlobs(&context, request, &response);
  };
  const grpc::Status refused = register_at(options_.listen[0]);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << refused.error_message();
  EXPECT_NE(refused.error_message().find("worker_listen"), std::string::npos);
  const grpc::Status taken = register_at(options_.worker_listen[0]);
  EXPECT_TRUE(taken.ok()) << taken.error_message();

  EXPECT_NE(submit(), "");
  jobs_ = v1::JobService::NewStub(wire::open_channel(options_.worker_listen[0]));
  grpc::ClientContext context;
  limit(context);
  v1::ListJobsResponse list;
  EXPECT_EQ(jobs_->ListJobs(&context, v1::ListJobsRequest(), &list).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  for (const auto& addresses : {options_.listen, options_.worker_listen})
    EXPECT_TRUE(find_blob_at(addresses[0]).ok()) << addresses[0];

  const auto mode = [](const std::string& path) {
    return static_cast<int>(fs::status(path).permissions());
  };
  EXPECT_EQ(mode(root_ + "/s"), 0660);
  EXPECT_EQ(mode(root_ + "/w"), 0600);
  server_.reset();
  EXPECT_FALSE(fs::exists(root_ + "/w"));
}

}  // namespace
}  // namespace quasi::server
