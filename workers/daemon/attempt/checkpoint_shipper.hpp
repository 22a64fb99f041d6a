#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/ports/server_link.hpp"
#include "workers/daemon/worker_log.hpp"

namespace quasi {

/// Uploads and records one attempt's checkpoints, one at a time; while one travels only the newest
/// of those that follow is remembered.
///
/// A checkpoint's sequence is that of the one the attempt was given plus the steps made since: it
/// rises with the step and is the same again after a restart of the daemon.
class CheckpointShipper : public std::enable_shared_from_this<CheckpointShipper> {
 public:
  struct Hooks {
    std::function<void(std::int64_t step)> recorded;
    std::function<void()> fenced;
  };
  CheckpointShipper(FileSystem& files, ServerLink& server, BlobTransfer& blobs,
                    Background& background, WorkerLog& log, const v1::Grant& grant, Hooks hooks);
  ~CheckpointShipper() { *abandon_ = true; }

  void offer(const std::filesystem::path& path, std::int64_t step);
  void pump();
  /// `done` is called once nothing is left to send.
  void flush(std::function<void()> done);
  /// Forgets what was not sent yet.
  void abandon();
  bool wants_retry() const { return retry_; }
  /// Of all that were offered, and of the one that the attempt was given.
  std::int64_t newest_step() const { return newest_step_; }

 private:
  struct Offer {
    std::filesystem::path path;
    std::int64_t step = 0;
  };
  struct Upload {
    Offer offer;
    std::string digest;
    std::uint64_t size_bytes = 0;
    grpc::Status status;
  };
  void uploaded(const Upload& upload);
  void recorded(const Offer& offer, const grpc::Status& status);
  void failed(const Offer& offer, const grpc::Status& status);
  void settle();

  FileSystem& files_;
  ServerLink& server_;
  BlobTransfer& blobs_;
  Background& background_;
  WorkerLog& log_;
  v1::AttemptRef attempt_;
  v1::Checkpoint base_;
  Hooks hooks_;
  std::function<void()> flushed_;
  std::optional<Offer> next_;
  std::int64_t newest_step_;
  bool busy_ = false;
  bool retry_ = false;
  std::shared_ptr<std::atomic<bool>> abandon_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace quasi
