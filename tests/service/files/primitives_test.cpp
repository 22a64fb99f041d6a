// Primitives that have one place each: files that are whole or absent, and digests.

#include <gtest/gtest.h>

#include <fcntl.h>

#include <cerrno>
#include <fstream>
#include <random>
#include <sstream>

#include "proto/wire/digest.hpp"
#include "tests/service/support/sync_trace.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/files/durable_file.hpp"
#include "workers/io/sha256.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(DurableFile, IsSyncedBeforeItIsPublished) {
  const TemporaryDirectory root;
  const fs::path folder = fs::canonical(root.path()), aside = folder / "aside";
  const SyncTrace trace;
  files::write_synced(aside, "seven b", O_EXCL);
  files::publish(aside, folder / "final");
  EXPECT_EQ(bytes_of(folder / "final"), "seven b");
  const int synced = trace.sync_of(aside, 7), renamed = trace.rename_to(folder / "final");
  EXPECT_GE(synced, 0);
  EXPECT_GT(renamed, synced);
  EXPECT_GE(trace.directory_sync_of(folder, renamed), 0);
}

TEST(DurableFile, AFailureNamesActPathAndReasonAndLeavesNothing) {
  const TemporaryDirectory root;
  const fs::path folder = fs::canonical(root.path()), path = folder / "file";
  SyncTrace trace;
  trace.fail_syncs_of("file", EIO);
  try {
    files::write_synced(path, "bytes", O_TRUNC);
    FAIL() << "the sync failed in silence";
  } catch (const files::FileFailure& failure) {
    EXPECT_EQ(failure.doing, "sync");
    EXPECT_EQ(failure.code().value(), EIO);
    EXPECT_EQ(failure.sentence(), "cannot sync '" + path.string() + "': Input/output error");
  }
  EXPECT_TRUE(fs::is_empty(folder)) << "the half-written file is left";
}

TEST(DurableFile, ANewFileReplacesNone) {
  const TemporaryDirectory root;
  const fs::path path = root.path() / "secret";
  files::write_synced(path, "first", O_EXCL);
  EXPECT_THROW(files::write_synced(path, "second", O_EXCL), files::FileFailure);
  EXPECT_EQ(bytes_of(path), "first");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// A file system that cannot sync directories has done the rename; any other failure counts.
TEST(DurableFile, DirectoriesThatCannotBeSyncedAreTolerated) {
  const TemporaryDirectory root;
  const fs::path folder = fs::canonical(root.path());
  files::write_synced(folder / "a", "bytes", O_EXCL);
  SyncTrace trace;
  trace.fail_syncs_of(folder, EINVAL);
  EXPECT_NO_THROW(files::publish(folder / "a", folder / "b"));
  EXPECT_THROW(files::sync_directory(folder), files::FileFailure);
  trace.fail_syncs_of(folder, EIO);
  EXPECT_THROW(files::publish(folder / "b", folder / "c"), files::FileFailure);
}

// The engine's own SHA-256 and that of OpenSSL, on every length around the blocks of 64 bytes and
// on long texts that come in random pieces.
TEST(Digests, OfEngineAndServiceAgree) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string bytes(i < 300 ? static_cast<std::size_t>(i) : random() % 500'000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    Sha256 engine;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = 1 + random() % 1'000;
      engine.update(std::string_view(bytes).substr(at, size));
      at += size;
    }
    ASSERT_EQ(engine.hex(), wire::sha256_hex(bytes)) << bytes.size() << " bytes";
  }
}

}  // namespace
}  // namespace quasi::test
