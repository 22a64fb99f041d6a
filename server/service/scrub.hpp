#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "proto/wire/digest.hpp"
#include "server/queue/clock.hpp"
#include "server/service/readers.hpp"
#include "server/service/writer.hpp"
#include "server/store/blob_store.hpp"

namespace quasi::server {

/// Marks a blob as corrupt and moves its file aside, unless the blob has been uploaded again since
/// the damaged bytes were read.
/// @param created_ms  time of the row when the reader opened the file
/// @return true if the blob is corrupt now
bool condemn_blob(SqliteStore& store, BlobStore& blobs, const std::string& digest,
                  std::int64_t created_ms);

struct ScrubOptions {
  std::int64_t period_ms = 30 * 86'400'000LL;  ///< every blob is read once in this time
  std::int64_t bytes_per_second = std::int64_t{16}
                                  << 20;  ///< highest rate; the work of jobs goes first
};

/// Reads every blob again, one after another in the order of their digests, and sets aside blobs
/// whose bytes no longer match their digest. Damage on the disk is thus found before a reader needs
/// the file. The database stores the progress of a pass. tick() supplies the time. The reading runs
/// on a file thread, a MiB at a time.
class Scrub {
 public:
  Scrub(Writer& writer, WorkPool& files, BlobStore& blobs, const ScrubOptions& options)
      : writer_(writer), files_(files), blobs_(blobs), options_(options) {}

  void tick(Now now);

 private:
  void choose(WriteContext& write);
  void read_on();
  void condemn(const std::string& digest);
  void rest();

  Writer& writer_;
  WorkPool& files_;
  BlobStore& blobs_;
  const ScrubOptions options_;

  std::mutex mutex_;
  bool busy_ = false;  ///< the writer or a file thread uses the members below
  std::int64_t allowance_bytes_ = 0;
  std::int64_t last_tick_ms_ = 0;
  std::int64_t next_pass_ms_ = 0;  ///< on the wall clock, as in the database
  std::string digest_;             ///< digest of the blob being read; "" between two blobs
  std::int64_t created_ms_ = 0;    ///< time of its row
  std::string finished_;           ///< digest to record as the progress of the pass
  std::unique_ptr<FileSystem::File> file_;
  wire::Sha256 hash_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace quasi::server
