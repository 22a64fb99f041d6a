// Tests files that must be whole or absent after a power loss: each is synced before it gets its
// name, and its directory is synced after that.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "client/failure.hpp"
#include "client/session/durable_file.hpp"
#include "client/session/state.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/status.hpp"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "server/store/blob_store.hpp"
#include "tests/service/support/sync_trace.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/posix_file_system.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

class Durability : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return fs::canonical(root_.path()) / name; }

  /// Checks that the bytes were synced under an earlier name and then renamed to `final_path`.
  /// @return the index of the rename.
  static int expect_synced_before_named(const SyncTrace& trace, const fs::path& final_path,
                                        std::int64_t size_bytes) {
    const int renamed = trace.rename_to(final_path);
    EXPECT_GE(renamed, 0) << final_path << " was not renamed into place";
    if (renamed < 0) return renamed;
    const std::string earlier_name = trace.calls()[static_cast<std::size_t>(renamed)].path;
    const int synced = trace.sync_of(earlier_name, size_bytes);
    EXPECT_GE(synced, 0) << earlier_name << " was not synced with " << size_bytes << " bytes";
    EXPECT_LT(synced, renamed) << "the name came before the bytes";
    return renamed;
  }

  /// Makes that check and checks that the directory was synced after the rename.
  static void expect_durable(const SyncTrace& trace, const fs::path& final_path,
                             std::int64_t size_bytes) {
    const int renamed = expect_synced_before_named(trace, final_path, size_bytes);
    EXPECT_GE(trace.directory_sync_of(final_path.parent_path(), renamed), 0)
        << "the new name was not synced";
  }

 private:
  TemporaryDirectory root_;
};

TEST_F(Durability, ClientFilesAreSyncedBeforeTheyGetTheirName) {
  const SyncTrace trace;
  client::write_durably(path("note.json"), "twelve bytes");
  expect_durable(trace, path("note.json"), 12);
}

TEST_F(Durability, AFailedSyncOfTheClientPublishesNothing) {
  client::write_durably(path("note.json"), "before");
  SyncTrace trace;
  trace.fail_syncs_of("note.json", EIO);
  EXPECT_THROW(client::write_durably(path("note.json"), "after"), client::Failure);
  EXPECT_EQ(client::read_whole(path("note.json"), 100), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(path("")), fs::directory_iterator()), 1)
      << "the half-written file is left";
}

// A submission is recorded before it is sent: its entry and every new folder are on the disk.
TEST_F(Durability, APendingSubmissionAndItsFoldersAreSynced) {
  const SyncTrace trace;
  client::State(path("a/b/state"))
      .add_pending({.request_id = "r",
                    .created_ms = 1,
                    .address = "x:1",
                    .store_id = "s",
                    .request_json = "{}"});
  const fs::path note = path("a/b/state/pending/r.json");
  expect_durable(trace, note, static_cast<std::int64_t>(fs::file_size(note)));
  for (const char* folder : {"", "a", "a/b", "a/b/state"}) {
    fs::path made_in = path(folder);
    if (!made_in.has_filename()) made_in = made_in.parent_path();
    EXPECT_GE(trace.directory_sync_of(made_in, -1), 0) << made_in << " has a new folder, unsynced";
  }
}

TEST_F(Durability, TheServersFilesReachTheDisk) {
  auto& files = server::system_files();
  {
    SyncTrace trace;
    const auto file = files.open(path("staged"), server::FileSystem::Open::kCreate);
    file->write(0, "abc");
    file->sync();
    EXPECT_GE(trace.sync_of(path("staged"), 3), 0);
    trace.fail_syncs_of("staged", EIO);
    EXPECT_THROW(file->sync(), server::FileError);
  }
  SyncTrace trace;
  files.sync_directory(path(""));
  EXPECT_EQ(trace.calls().size(), 1U);
  trace.fail_syncs_of(path("").parent_path(), EIO);
  EXPECT_THROW(files.sync_directory(path("")), server::FileError);
}

TEST_F(Durability, TheWorkersFilesReachTheDisk) {
  PosixFileSystem files;
  SyncTrace trace;
  files.write_file(path("outcome"), "four");
  files.sync_file(path("outcome"));
  EXPECT_GE(trace.sync_of(path("outcome"), 4), 0);
  const int before = static_cast<int>(trace.calls().size()) - 1;
  files.sync_directory(path("").parent_path());
  EXPECT_GE(trace.directory_sync_of(path("").parent_path(), before), 0);
  trace.fail_syncs_of("outcome", EIO);
  EXPECT_THROW(files.sync_file(path("outcome")), StorageFailure);
}

TEST_F(Durability, ResultsOfTheEngineAreSyncedBeforeTheyGetTheirName) {
  const SyncTrace trace;
  H5Writer writer(path("result.h5"));
  writer.write_scalar("value", 1.0, "1");
  writer.commit();
  expect_synced_before_named(trace, path("result.h5"),
                             static_cast<std::int64_t>(fs::file_size(path("result.h5"))));
}

/// Serves one blob.
class OneBlob : public v1::BlobService::Service {
 public:
  explicit OneBlob(std::string bytes) : bytes_(std::move(bytes)) {}
  grpc::Status ReadBlob(grpc::ServerContext*, const v1::ReadBlobRequest* request,
                        grpc::ServerWriter<v1::ReadBlobResponse>* writer) override {
    v1::ReadBlobResponse response;
    response.set_offset(request->offset());
    response.set_data(bytes_.substr(request->offset()));
    writer->Write(response);
    return grpc::Status::OK;
  }

 private:
  std::string bytes_;
};

TEST_F(Durability, DownloadsAreSyncedBeforeTheyGetTheirName) {
  OneBlob service("the result");
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto channel = server->InProcessChannel({});
  {
    SyncTrace trace;
    trace.fail_syncs_of("broken.part", EIO);
    EXPECT_FALSE(
        wire::download_file(channel, wire::sha256_hex("the result"), 10, path("broken")).ok());
    EXPECT_FALSE(fs::exists(path("broken")));
  }
  const SyncTrace trace;
  const auto status =
      wire::download_file(channel, wire::sha256_hex("the result"), 10, path("kappa"));
  EXPECT_TRUE(status.ok()) << status.error_message();
  expect_durable(trace, path("kappa"), 10);
}

}  // namespace
}  // namespace quasi::test
