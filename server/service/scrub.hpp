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

struct ScrubOptions {
  std::int64_t period_ms = 30 * 86'400'000LL;              ///< every blob is read once in so long
  std::int64_t bytes_per_second = std::int64_t{16} << 20;  ///< at most; work in progress goes first
};

/// Reads every blob again, one after another in the order of their digests, and puts aside what no
/// longer hashes to its name, so that a disk that forgets is noticed before somebody needs the
/// file. How far a pass came is kept in the database. Told of time by tick(); reads on a file
/// thread, a MiB at a time.
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
  bool busy_ = false;  ///< the writer or a file thread has the rest of this
  std::int64_t allowance_bytes_ = 0;
  std::int64_t last_tick_ms_ = 0;
  std::int64_t next_pass_ms_ = 0;  ///< wall clock, as in the database
  std::string digest_;             ///< being read; "" between two
  std::string finished_;           ///< to be noted as the pass's place
  std::unique_ptr<FileSystem::File> file_;
  wire::Sha256 hash_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace quasi::server
