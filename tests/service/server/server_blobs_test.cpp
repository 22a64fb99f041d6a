// Uploads and downloads of blobs through a real server: cut and continued, damaged on the disk, and
// read too slowly. The truth is the SHA-256 digest of the uploaded file.

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

// An upload that is cut continues where the server stopped, and a download where the client
// stopped. The bytes are those of the file.
TEST_F(Calls, AnUploadAndADownloadContinueWhereTheyWereCut) {
  const std::string path = write_file("big", (5U << 20) + 123);
  const auto file = wire::digest_file(path);
  const std::string upload_id = wire::make_uuid();
  std::uint64_t first = 0;
  grpc::Status status =
      wire::upload_file(channel_, path, file.digest, file.size_bytes,
                        {.on_progress = [&](std::uint64_t done, std::uint64_t) { first = done; },
                         .cancelled =
                             [&] {
                               if (first <= (3U << 20)) return false;
                               // Bytes on their way are lost with the connection. The cut waits
                               // until the server has stored some.
                               return wait_for([&] {
                                 std::error_code none;
                                 const auto staged = std::filesystem::file_size(
                                     root_ + "/data/staging/" + upload_id, none);
                                 return !none && staged > (2U << 20);
                               });
                             },
                         .upload_id = upload_id});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  std::uint64_t resumed_at = 0;
  status = wire::upload_file(channel_, path, file.digest, file.size_bytes,
                             {.on_progress =
                                  [&](std::uint64_t done, std::uint64_t) {
                                    if (resumed_at == 0) resumed_at = done;
                                  },
                              .upload_id = upload_id});
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(resumed_at, 1U << 20) << "the upload started from nothing";

  const std::string target = root_ + "/fetched";
  for (int part = 1; part <= 3; ++part) {
    std::uint64_t done = 0;
    status = wire::download_file(
        channel_, file.digest, file.size_bytes, target,
        {.on_progress = [&](std::uint64_t now, std::uint64_t) { done = now; },
         .cancelled = [&] { return part < 3 && done > static_cast<std::uint64_t>(part) << 20; }});
  }
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(wire::digest_file(target).digest, file.digest);
}

// I10: bytes that no longer hash to their name are never served. Another upload repairs the blob.
TEST_F(Calls, ACorruptBlobIsDataLoss) {
  const std::string path = write_file("blob", 700'000);
  const auto file = wire::digest_file(path);
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  const std::string stored = options_.data_directory + "/blobs/sha256/" + file.digest.substr(0, 2) +
                             "/" + file.digest.substr(2, 2) + "/" + file.digest;
  std::filesystem::permissions(stored, std::filesystem::perms::owner_all);
  {
    std::fstream out(stored, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(12'345);
    out.put('!');
  }
  for (int time = 0; time < 2; ++time) {
    const grpc::Status status =
        wire::download_file(channel_, file.digest, file.size_bytes, root_ + "/out");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
    EXPECT_EQ(wire::reason_of(status), wire::reason::kBlobCorrupt);
    EXPECT_FALSE(std::filesystem::exists(root_ + "/out"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  EXPECT_TRUE(wire::download_file(channel_, file.digest, file.size_bytes, root_ + "/out").ok());
}

// The server reads all blobs again from time to time. It finds a damaged blob that no client reads,
// and moves it aside.
TEST_F(Calls, ABlobThatRotsIsFoundBeforeItIsNeeded) {
  server_.reset();
  options_.scrub.period_ms = 1;
  options_.scrub.bytes_per_second = std::int64_t{1} << 30;
  start();
  std::vector<wire::FileDigest> files;
  for (const std::size_t size : {700'000U, 3'000'001U, 1U << 20}) {
    const std::string path = write_file(std::to_string(size), size);
    files.push_back(wire::digest_file(path));
    ASSERT_TRUE(
        wire::upload_file(channel_, path, files.back().digest, files.back().size_bytes).ok());
  }
  const std::string rotten = files[1].digest;
  const std::string stored = options_.data_directory + "/blobs/sha256/" + rotten.substr(0, 2) +
                             "/" + rotten.substr(2, 2) + "/" + rotten;
  std::filesystem::permissions(stored, std::filesystem::perms::owner_all);
  {
    std::fstream out(stored, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(2'999'999);
    out.put('!');
    out.put('?');
  }
  const std::string aside = options_.data_directory + "/corrupt/" + rotten;
  EXPECT_TRUE(wait_for([&] { return std::filesystem::exists(aside); }));
  for (const auto& file : files) {
    const grpc::Status status =
        wire::download_file(channel_, file.digest, file.size_bytes, root_ + "/out");
    EXPECT_EQ(status.error_code(),
              file.digest == rotten ? grpc::StatusCode::DATA_LOSS : grpc::StatusCode::OK)
        << status.error_message();
  }
}

// A reader that takes nothing for one limit is told the reason when it reads on, and may continue
// by offset. A reader that takes nothing for two limits is reset.
TEST_F(Calls, ASlowReaderIsToldSo) {
  const std::string path = write_file("big", 8U << 20);
  const auto file = wire::digest_file(path);
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  // Reader and server may sleep too long on a busy machine: the test is then repeated with longer
  // limits.
  for (const bool reads_on : {true, false}) {
    std::int64_t limit_ms = 300;
    for (bool shown = false; !shown; limit_ms *= 2) {
      ASSERT_LT(limit_ms, 20'000) << (reads_on ? "no reader was told" : "no reader was reset");
      server_.reset();
      options_.api.slow_reader_ms = limit_ms;
      start();
      grpc::ClientContext context;
      limit(context);
      v1::ReadBlobRequest request;
      request.set_digest(file.digest);
      const auto reader = blobs_->ReadBlob(&context, request);
      std::this_thread::sleep_for(
          std::chrono::milliseconds(reads_on ? limit_ms * 3 / 2 : limit_ms * 4));
      v1::ReadBlobResponse response;
      std::uint64_t taken = 0;
      while (reader->Read(&response)) taken += response.data().size();
      const grpc::Status status = reader->Finish();
      shown = taken < file.size_bytes && !status.ok();
      if (reads_on)
        shown = shown && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
                wire::reason_of(status) == wire::reason::kSlowReader;
      // The rest comes, in one piece more for every pause of this thread.
      grpc::Status rest;
      for (int tries = 0; tries < 50 && taken < file.size_bytes; ++tries) {
        request.set_offset(taken);
        grpc::ClientContext again;
        limit(again);
        const auto continued = blobs_->ReadBlob(&again, request);
        while (continued->Read(&response)) taken += response.data().size();
        rest = continued->Finish();
      }
      EXPECT_TRUE(rest.ok()) << rest.error_message();
      EXPECT_EQ(taken, file.size_bytes);
    }
  }
}

/// Bytes that this process has read from files, by /proc/self/io.
std::uint64_t bytes_read_by_this_process() {
  std::ifstream in("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  in >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// A download that is cut forty times reads little more from disk than one that is never cut. The
// whole is verified all the same: a blob that was damaged since the last cut is not served to its
// end.
TEST_F(Calls, ContinuedDownloadsAreNotHashedFromTheirBeginning) {
  constexpr std::uint64_t kSize = 64U << 20;
  const std::string path = write_file("big", kSize);
  const auto file = wire::digest_file(path);
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  std::uint64_t taken = 0;
  wire::Sha256 hash;
  const auto read_on = [&](std::uint64_t most) {
    grpc::ClientContext context;
    limit(context);
    v1::ReadBlobRequest request;
    request.set_digest(file.digest);
    request.set_offset(taken);
    const auto reader = blobs_->ReadBlob(&context, request);
    v1::ReadBlobResponse response;
    const std::uint64_t until = taken + most;
    while (reader->Read(&response)) {
      hash.update(response.data());
      taken += response.data().size();
      if (taken >= until) {
        context.TryCancel();
        break;  // Messages that have already arrived are dropped.
      }
    }
    return reader->Finish();
  };
  const std::uint64_t before = bytes_read_by_this_process();
  for (int cut = 0; cut < 40; ++cut) {
    read_on(1U << 20);
    ASSERT_LT(taken, kSize);
  }
  ASSERT_TRUE(read_on(2 * kSize).ok());
  EXPECT_EQ(hash.finish_hex(), file.digest);
  // Each cut costs at most the distance of two marks, and the bytes that were on their way.
  const double share = static_cast<double>(bytes_read_by_this_process() - before) / kSize;
  std::cout << "    read " << share
            << " times its size for 40 cuts; 14 times if hashed from its beginning\n";
  EXPECT_LT(share, 4.0);

  // The damage lies behind the first half, which the reader already has.
  const auto damage = [&] {
    const auto stored = root_ + "/data/blobs/sha256/" + file.digest.substr(0, 2) + "/" +
                        file.digest.substr(2, 2) + "/" + file.digest;
    std::filesystem::permissions(stored, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::fstream out(stored, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(40 << 20);
    out.put('x').put('y');
    ASSERT_TRUE(out.good());
  };
  taken = 0;
  read_on(kSize / 2);
  damage();
  const grpc::Status status = read_on(2 * kSize);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
  EXPECT_LT(taken, kSize);
  // Another upload makes the blob readable, also from the middle: the server remembers nothing of
  // the damaged one.
  ASSERT_TRUE(wire::upload_file(channel_, path, file.digest, file.size_bytes).ok());
  taken = kSize / 4 * 3;
  EXPECT_TRUE(read_on(2 * kSize).ok());
}

}  // namespace
}  // namespace quasi::server
