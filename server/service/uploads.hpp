#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "proto/wire/digest.hpp"
#include "server/store/blob_store.hpp"

namespace quasi::server {

/// One upload while a stream carries it. `owner` says which stream may write; a later stream with
/// the same id takes over, and the earlier one is told so with its next chunk. Callers hold `mutex`
/// while they use the rest.
struct UploadSession {
  std::mutex mutex;
  std::string upload_id;
  std::string digest;
  std::uint64_t size_bytes = 0;
  std::uint64_t offset = 0;  ///< bytes written
  std::uint64_t synced = 0;  ///< bytes on disk
  std::unique_ptr<FileSystem::File> file;
  wire::Sha256 hash;
  const void* owner = nullptr;
  const void* claimant = nullptr;  ///< who opened it last; guarded by Uploads, not by `mutex`

  /// Appends `data`, which must start at `at`.
  /// @throws Refused ABORTED / OFFSET_MISMATCH, INVALID_ARGUMENT / SIZE_MISMATCH.
  void append(std::uint64_t at, std::string_view data);
  /// @return true if there was something to sync.
  bool sync();
};

/// Uploads in progress, and how they begin, continue and end on disk. Thread-safe.
class Uploads {
 public:
  explicit Uploads(BlobStore& blobs) : blobs_(blobs) {}

  struct Known {
    std::string digest;
    std::uint64_t size_bytes = 0;
    std::uint64_t committed_bytes = 0;
  };

  /// Opens (or takes over) the session of an upload for `owner`. `known` is what the database
  /// remembers; the staging file is cut to it and hashed anew.
  /// @throws Refused RESOURCE_EXHAUSTED / RATE_LIMITED, INVALID_ARGUMENT if it is another blob's.
  std::shared_ptr<UploadSession> open(const std::string& upload_id, const std::string& digest,
                                      std::uint64_t size_bytes, const std::optional<Known>& known,
                                      const void* owner);
  std::shared_ptr<UploadSession> find(const std::string& upload_id);

  /// Syncs the file, checks the digest and gives the file its final name.
  /// @throws Refused INVALID_ARGUMENT / DIGEST_MISMATCH; the staging file is then gone.
  void publish(UploadSession& session);

  /// Forgets the session if `owner` still has it.
  void close(const std::shared_ptr<UploadSession>& session, const void* owner);

 private:
  BlobStore& blobs_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<UploadSession>> sessions_;
};

}  // namespace quasi::server
