#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

/// Transfers files to and from the blob store and continues after broken connections.
namespace quasi::wire {

struct TransferOptions {
  /// Receives the bytes done and the total, at most once every 256 KiB.
  std::function<void(std::uint64_t, std::uint64_t)> on_progress;
  /// Polled between chunks. True ends the transfer with CANCELLED; the transferred bytes are kept.
  std::function<bool()> cancelled;
  /// Number of failures in a row (UNAVAILABLE, broken streams), without a byte of progress, before
  /// giving up.
  int attempts = 8;
  /// For uploads: names the staging file, so that a later process can continue. Empty: a new id.
  std::string upload_id;
};

/// Uploads `path`, which must have this digest and size. Returns OK at once if the store has the
/// blob.
grpc::Status upload_file(const std::shared_ptr<grpc::Channel>& channel,
                         const std::filesystem::path& path, const std::string& digest,
                         std::uint64_t size_bytes, const TransferOptions& options = {});

/// Downloads a blob to "path.part", which is continued if it exists, hashes the whole file, syncs
/// it and renames it to `path`. DATA_LOSS if the bytes do not hash to the digest; the part is then
/// removed. A local file error is UNKNOWN with errno's sentence and metadata `local=true`.
grpc::Status download_file(const std::shared_ptr<grpc::Channel>& channel, const std::string& digest,
                           std::uint64_t size_bytes, const std::filesystem::path& path,
                           const TransferOptions& options = {});

/// A random UUID (version 4) in its usual text form, for request ids, incarnations and upload ids.
std::string make_uuid();

/// True for 8-4-4-4-12 hexadecimal characters.
bool is_uuid(const std::string& text);

}  // namespace quasi::wire
