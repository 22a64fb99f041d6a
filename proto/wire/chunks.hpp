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

/// Files to and from the blob store, over any number of broken connections.
namespace quasi::wire {

struct TransferOptions {
  /// Bytes done and in all; called at most every 256 KiB.
  std::function<void(std::uint64_t, std::uint64_t)> on_progress;
  /// Polled between chunks; true ends the transfer with CANCELLED. What was moved is kept.
  std::function<bool()> cancelled;
  /// UNAVAILABLE and broken streams in a row, without a byte of progress, before giving up.
  int attempts = 8;
  /// Uploads: names the staging file, so that a later process can continue. Empty: a fresh one.
  std::string upload_id;
};

/// Uploads `path`, whose digest and size are those given. Returns OK at once if the store has it.
grpc::Status upload_file(const std::shared_ptr<grpc::Channel>& channel,
                         const std::filesystem::path& path, const std::string& digest,
                         std::uint64_t size_bytes, const TransferOptions& options = {});

/// Downloads a blob to `path`: written to "path.part" (continued where one lies), hashed as a
/// whole, synced, renamed. DATA_LOSS if the bytes do not hash to the digest; the part is then
/// removed. A local file error is UNKNOWN with errno's sentence and metadata `local=true`.
grpc::Status download_file(const std::shared_ptr<grpc::Channel>& channel, const std::string& digest,
                           std::uint64_t size_bytes, const std::filesystem::path& path,
                           const TransferOptions& options = {});

/// A random UUID (version 4) in its usual text form: request ids, incarnations, upload ids.
std::string make_uuid();

/// True for 8-4-4-4-12 hexadecimal characters.
bool is_uuid(const std::string& text);

}  // namespace quasi::wire
