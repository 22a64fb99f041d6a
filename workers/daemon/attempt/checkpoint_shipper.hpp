#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "workers/daemon/attempt/worker_ports.hpp"

namespace quasi {

/// Uploads and records the checkpoints of one attempt, one at a time. During an upload only the
/// newest waiting checkpoint is remembered.
///
/// The sequence number of a checkpoint is the number of the checkpoint that the attempt resumed
/// from plus the steps made since. It rises with the step and does not change when the daemon
/// restarts.
class CheckpointShipper : public std::enable_shared_from_this<CheckpointShipper> {
 public:
  struct Hooks {
    std::function<void(std::int64_t step)> recorded;
    std::function<void()> fenced;
  };
  CheckpointShipper(const WorkerPorts& ports, const v1::Grant& grant, Hooks hooks);
  ~CheckpointShipper() { *abandon_ = true; }

  /// Offers a complete checkpoint file of the engine for upload.
  void offer(const std::filesystem::path& path, std::int64_t step);
  /// Starts the upload of the newest waiting checkpoint if none is under way.
  void pump();
  /// Sends the waiting checkpoints. `done` is called when none is left to send.
  void flush(std::function<void()> done);
  /// Forgets the checkpoints that have not been sent.
  void abandon();
  bool wants_retry() const { return retry_; }
  /// Returns the newest step among the offered checkpoints and the checkpoint that the attempt
  /// resumed from.
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

  WorkerPorts ports_;
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
