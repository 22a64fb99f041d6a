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

/// One upload while a stream carries it. `owner` names the stream that may write. A later stream
/// with the same id becomes the owner, and the earlier stream is refused at its next chunk. Callers
/// hold `mutex` while they use the members.
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
  /// True once a row of the database records the upload, which can then be continued.
  std::atomic<bool> is_recorded{false};
  const void* claimant =
      nullptr;  ///< stream that opened it last; guarded by Uploads, not by `mutex`
  std::uint64_t announced_bytes = 0;  ///< the announced size_bytes; guarded by Uploads

  /// Appends `data`, which must start at offset `at`.
  /// @throws Refused ABORTED / OFFSET_MISMATCH, INVALID_ARGUMENT / SIZE_MISMATCH.
  void append(std::uint64_t at, std::string_view data);
  /// Syncs the written bytes. @return true if there were any.
  bool sync();
};

/// The uploads in progress: begins, continues and ends them on disk. Thread-safe.
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
    std::optional<Known> known;  ///< state that the database records of it
  };

  /// Opens the session of an upload for `owner`, or takes it over. The staging file is cut to the
  /// length that the database records and hashed anew.
  /// @param room_bytes  free bytes of the disk; the announced but unwritten bytes of all open
  /// uploads count against them
  /// @throws Refused RESOURCE_EXHAUSTED / RATE_LIMITED or STORAGE_LOW, or INVALID_ARGUMENT if the
  /// id belongs to another blob. No session and no staged byte remains then.
  std::shared_ptr<UploadSession> open(const Announced& upload, std::int64_t room_bytes,
                                      const void* owner);
  std::shared_ptr<UploadSession> find(const std::string& upload_id);

  /// Syncs the file, checks the digest and gives the file its final name.
  /// @throws Refused INVALID_ARGUMENT / DIGEST_MISMATCH; the staging file is then removed.
  void publish(UploadSession& session);

  /// Drops the session if `owner` still owns it. Staged bytes stay only if a row records them,
  /// because garbage collection would not know of others.
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
