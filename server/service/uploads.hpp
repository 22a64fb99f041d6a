#pragma once

#include <atomic>
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
  std::atomic<std::uint64_t> offset{0};  ///< Bytes written; read by Uploads without `mutex`.
  std::uint64_t synced = 0;              ///< bytes on disk
  std::unique_ptr<FileSystem::File> file;
  wire::Sha256 hash;
  const void* owner = nullptr;
  /// True once a row of the database remembers the upload, which then may be continued.
  std::atomic<bool> is_recorded{false};
  const void* claimant = nullptr;     ///< Who opened it last; guarded by Uploads, not by `mutex`.
  std::uint64_t announced_bytes = 0;  ///< As size_bytes; guarded by Uploads.

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

  /// An upload as its stream announces it.
  struct Announced {
    std::string upload_id;
    std::string digest;
    std::uint64_t size_bytes = 0;
    std::optional<Known> known;  ///< What the database remembers of it.
  };

  /// Opens (or takes over) the session of an upload for `owner`. The staging file is cut to what
  /// the database remembers and hashed anew.
  /// @param room_bytes  what the disk can still take; all that open uploads announced and did not
  ///                    write yet counts against it
  /// @throws Refused RESOURCE_EXHAUSTED / RATE_LIMITED or STORAGE_LOW, INVALID_ARGUMENT if it is
  ///         another blob's. No session and no staged byte is left then.
  std::shared_ptr<UploadSession> open(const Announced& upload, std::int64_t room_bytes,
                                      const void* owner);
  std::shared_ptr<UploadSession> find(const std::string& upload_id);

  /// Syncs the file, checks the digest and gives the file its final name.
  /// @throws Refused INVALID_ARGUMENT / DIGEST_MISMATCH; the staging file is then gone.
  void publish(UploadSession& session);

  /// Forgets the session if `owner` still has it. Staged bytes stay only if a row remembers them:
  /// of others no collection would know.
  void close(const std::shared_ptr<UploadSession>& session, const void* owner);

 private:
  std::shared_ptr<UploadSession> claim(const Announced& upload, std::int64_t room_bytes,
                                       const void* owner);
  void prepare(UploadSession& session, const Announced& upload, const void* owner);
  std::uint64_t promised_bytes_except(const std::string& upload_id) const;

  BlobStore& blobs_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<UploadSession>> sessions_;
};

}  // namespace quasi::server
