#pragma once

#include <grpcpp/support/status.h>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "quasi/v1/worker_service.pb.h"

namespace quasi {

/// Calls of the supervisor to the server. Every call returns at once. Its answer is delivered
/// exactly once, on the loop's thread and after the call has returned.
class ServerLink {
 public:
  template <typename Response>
  using Then = std::function<void(const grpc::Status&, const Response&)>;

  virtual ~ServerLink() = default;
  /// Registers the worker with its devices.
  virtual void register_worker(const v1::RegisterRequest&, Then<v1::RegisterResponse>) = 0;
  /// Asks for leases of free slots. The server answers when it has some, or after a while.
  virtual void acquire(const v1::AcquireLeasesRequest&, Then<v1::AcquireLeasesResponse>) = 0;
  /// Ends an acquire that is under way. It then answers CANCELLED, unless an answer has already
  /// come.
  virtual void cancel_acquire() = 0;
  /// Sends a heartbeat. A heartbeat without an answer within `limit` counts as lost.
  virtual void heartbeat(const v1::HeartbeatRequest&, Milliseconds limit,
                         Then<v1::HeartbeatResponse>) = 0;
  /// Announces that the engine has started.
  virtual void start_attempt(const v1::StartAttemptRequest&, Then<v1::StartAttemptResponse>) = 0;
  /// Appends bytes to the log of an attempt at an offset.
  virtual void append_log(const v1::AppendLogRequest&, Then<v1::AppendLogResponse>) = 0;
  /// Records a checkpoint whose file is uploaded.
  virtual void record_checkpoint(const v1::RecordCheckpointRequest&,
                                 Then<v1::RecordCheckpointResponse>) = 0;
  /// Reports the ending of an attempt.
  virtual void complete(const v1::CompleteAttemptRequest&, Then<v1::CompleteAttemptResponse>) = 0;
  /// Gives a lease back.
  virtual void release(const v1::ReleaseLeaseRequest&, Then<v1::ReleaseLeaseResponse>) = 0;
};

/// Transfers files from and to the server. The calls block and come from background threads only.
/// Setting `abandon` soon ends a transfer with CANCELLED.
class BlobTransfer {
 public:
  virtual ~BlobTransfer() = default;
  /// Downloads a blob to a file and checks its digest.
  virtual grpc::Status download(const std::string& digest, std::uint64_t size_bytes,
                                const std::filesystem::path& to,
                                const std::atomic<bool>& abandon) = 0;
  /// Uploads a file as a blob.
  virtual grpc::Status upload(const std::filesystem::path& from, const std::string& digest,
                              std::uint64_t size_bytes, const std::atomic<bool>& abandon) = 0;
};

/// Runs work that may block, outside the thread of the loop.
class Background {
 public:
  virtual ~Background() = default;
  /// Runs `work` on another thread, then `done` on the loop's thread. `work` must not throw.
  virtual void run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace quasi
