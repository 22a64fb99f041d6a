// Bytes that do not match their digest: 1,000 damaged uploads, and stored files that rot.

#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

namespace fs = std::filesystem;

class DamagedBlobs : public Calls {
 protected:
  /// One upload as its messages say it, which may be wrong.
  struct Upload {
    std::string digest;
    std::uint64_t size_bytes = 0;
    std::vector<std::pair<std::uint64_t, std::string>> parts;  ///< offsets and bytes
  };

  grpc::Status send(const Upload& upload) {
    grpc::ClientContext context;
    limit(context);
    v1::WriteBlobResponse response;
    const auto stream = blobs_->WriteBlob(&context, &response);
    v1::WriteBlobRequest message;
    message.mutable_header()->set_upload_id(wire::make_uuid());
    message.mutable_header()->set_digest(upload.digest);
    message.mutable_header()->set_size_bytes(upload.size_bytes);
    bool goes_on = stream->Write(message);
    for (std::size_t i = 0; goes_on && i < upload.parts.size(); ++i) {
      message.mutable_data()->set_offset(upload.parts[i].first);
      message.mutable_data()->set_data(upload.parts[i].second);
      goes_on = stream->Write(message);
    }
    stream->WritesDone();
    return stream->Finish();
  }
  /// Makes an upload of random bytes in a few parts, without any damage.
  Upload sound() {
    std::string bytes(1'000 + random_() % 20'000, '\0');
    for (char& c : bytes) c = static_cast<char>(random_());
    Upload upload{.digest = wire::sha256_hex(bytes), .size_bytes = bytes.size(), .parts = {}};
    const std::size_t step = bytes.size() / (2 + random_() % 4);
    for (std::size_t at = 0; at < bytes.size(); at += step)
      upload.parts.emplace_back(at, bytes.substr(at, step));
    return upload;
  }
  /// Damages an upload in one of six ways. @return the way
  std::string damage(Upload& upload) {
    auto& part = upload.parts[random_() % upload.parts.size()];
    switch (random_() % 6) {
      case 0: {
        char& byte = part.second[random_() % part.second.size()];
        byte = static_cast<char>(byte ^ (1 << random_() % 8));
        return "a bit";
      }
      case 1:
        upload.parts.back().second.pop_back();
        return "the end is missing";
      case 2:
        upload.parts.erase(upload.parts.begin() + 1);
        return "a part is missing";
      case 3:
        std::swap(upload.parts[0].second, upload.parts[1].second);
        // Parts of equal length keep their offsets, so that the digest alone tells.
        return upload.parts[0].second == upload.parts[1].second ? "" : "order";
      case 4:
        upload.digest[random_() % 64] = upload.digest[0] == 'f' ? '0' : 'f';
        return wire::is_digest(upload.digest) ? "digest" : "";
      default:
        upload.size_bytes += random_() % 2 == 0 ? 1 : std::uint64_t(-1);
        return "size";
    }
  }
  /// Digests of the files that have their final name.
  std::set<std::string> stored() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root_ + "/data/blobs"))
      if (entry.is_regular_file()) names.insert(entry.path().filename().string());
    return names;
  }
  std::string path_of(const std::string& digest) const {
    return root_ + "/data/blobs/sha256/" + digest.substr(0, 2) + "/" + digest.substr(2, 2) + "/" +
           digest;
  }
  /// Stores `count` files and then changes one byte of each. @return their digests
  std::vector<wire::FileDigest> store_and_rot(std::size_t count) {
    std::vector<wire::FileDigest> files;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string path = write_file("blob", 10'000 + random_() % 300'000);
      files.push_back(wire::digest_file(path));
      EXPECT_TRUE(
          wire::upload_file(channel_, path, files.back().digest, files.back().size_bytes).ok());
    }
    for (const auto& file : files) {
      const std::string path = path_of(file.digest);
      fs::permissions(path, fs::perms::owner_all);
      std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
      const auto at = static_cast<std::streamoff>(random_() % file.size_bytes);
      bytes.seekg(at);
      const char was = static_cast<char>(bytes.get());
      bytes.seekp(at);
      bytes.put(static_cast<char>(was ^ (1 << random_() % 8)));
    }
    return files;
  }

  std::mt19937_64 random_{20'261};
};

TEST_F(DamagedBlobs, NoneOfAThousandDamagedUploadsGetsAName) {
  std::map<std::string, int> ways;
  for (int i = 0; i < 1'000; ++i) {
    Upload upload = sound();
    const Upload before = upload;
    const std::string way = damage(upload);
    if (way.empty() || (upload.digest == before.digest && upload.parts == before.parts &&
                        upload.size_bytes == before.size_bytes)) {
      --i;
      continue;
    }
    ++ways[way];
    const grpc::Status status = send(upload);
    ASSERT_TRUE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                status.error_code() == grpc::StatusCode::ABORTED)
        << way << ": " << status.error_message();
  }
  EXPECT_EQ(stored(), std::set<std::string>());
  for (const auto& [way, count] : ways) std::cout << "  " << way << ": " << count << '\n';
  EXPECT_EQ(ways.size(), 6U);
  const Upload whole = sound();
  EXPECT_TRUE(send(whole).ok());
  EXPECT_EQ(stored(), std::set<std::string>{whole.digest});
}

TEST_F(DamagedBlobs, OfTwentyRottenFilesNoneIsServed) {
  for (const auto& file : store_and_rot(20)) {
    const std::string target = root_ + "/out";
    const grpc::Status status = wire::download_file(channel_, file.digest, file.size_bytes, target);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
    EXPECT_FALSE(fs::exists(target));
  }
}

TEST_F(DamagedBlobs, TheScrubFindsTwentyRottenFiles) {
  const auto files = store_and_rot(20);
  server_.reset();
  options_.scrub.period_ms = 1;
  options_.scrub.bytes_per_second = std::int64_t{1} << 30;
  start();
  for (const auto& file : files)
    EXPECT_TRUE(wait_for([&] { return fs::exists(root_ + "/data/corrupt/" + file.digest); }));
}

}  // namespace
}  // namespace quasi::server
