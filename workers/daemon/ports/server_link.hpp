#pragma once

#include <grpcpp/support/status.h>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "quasi/v1/worker_service.pb.h"

namespace quasi {

/// What the supervisor asks of the server. Every call returns at once; its answer comes back on the
/// loop's thread, exactly once, never before the call has returned.
class ServerLink {
 public:
  template <typename Response>
  using Then = std::function<void(const grpc::Status&, const Response&)>;

  virtual ~ServerLink() = default;
  virtual void register_worker(const v1::RegisterRequest&, Then<v1::RegisterResponse>) = 0;
  virtual void acquire(const v1::AcquireLeasesRequest&, Then<v1::AcquireLeasesResponse>) = 0;
  /// Ends an acquire under way; it answers CANCELLED unless it was answered already.
  virtual void cancel_acquire() = 0;
  /// Without an answer within `limit` it counts as lost.
  virtual void heartbeat(const v1::HeartbeatRequest&, Milliseconds limit,
                         Then<v1::HeartbeatResponse>) = 0;
  virtual void start_attempt(const v1::StartAttemptRequest&, Then<v1::StartAttemptResponse>) = 0;
  virtual void append_log(const v1::AppendLogRequest&, Then<v1::AppendLogResponse>) = 0;
  virtual void record_checkpoint(const v1::RecordCheckpointRequest&,
                                 Then<v1::RecordCheckpointResponse>) = 0;
  virtual void complete(const v1::CompleteAttemptRequest&, Then<v1::CompleteAttemptResponse>) = 0;
  virtual void release(const v1::ReleaseLeaseRequest&, Then<v1::ReleaseLeaseResponse>) = 0;
};

/// Files from and to the server. Blocks; called from background threads only. Setting `abandon`
/// ends a transfer with CANCELLED soon.
class BlobTransfer {
 public:
  virtual ~BlobTransfer() = default;
  virtual grpc::Status download(const std::string& digest, std::uint64_t size_bytes,
                                const std::filesystem::path& to,
                                const std::atomic<bool>& abandon) = 0;
  virtual grpc::Status upload(const std::filesystem::path& from, const std::string& digest,
                              std::uint64_t size_bytes, const std::atomic<bool>& abandon) = 0;
};

/// Work that may block, away from the loop.
class Background {
 public:
  virtual ~Background() = default;
  /// Runs `work` on some other thread, then `done` on the loop's. `work` must not throw.
  virtual void run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace quasi
