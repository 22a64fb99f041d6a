#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "quasi/v1/worker_service.grpc.pb.h"
#include "workers/daemon/ports/event_loop.hpp"
#include "workers/daemon/ports/server_link.hpp"

namespace quasi {

/// Calls the server over gRPC and posts the answers to the loop. Its destructor cancels the calls
/// that are under way and waits for them.
class GrpcLink : public ServerLink {
 public:
  GrpcLink(EventLoop& loop, std::shared_ptr<grpc::Channel> channel);
  ~GrpcLink() override;

  void register_worker(const v1::RegisterRequest&, Then<v1::RegisterResponse>) override;
  void acquire(const v1::AcquireLeasesRequest&, Then<v1::AcquireLeasesResponse>) override;
  void cancel_acquire() override;
  void heartbeat(const v1::HeartbeatRequest&, Milliseconds limit,
                 Then<v1::HeartbeatResponse>) override;
  void start_attempt(const v1::StartAttemptRequest&, Then<v1::StartAttemptResponse>) override;
  void append_log(const v1::AppendLogRequest&, Then<v1::AppendLogResponse>) override;
  void record_checkpoint(const v1::RecordCheckpointRequest&,
                         Then<v1::RecordCheckpointResponse>) override;
  void complete(const v1::CompleteAttemptRequest&, Then<v1::CompleteAttemptResponse>) override;
  void release(const v1::ReleaseLeaseRequest&, Then<v1::ReleaseLeaseResponse>) override;

 private:
  template <typename Request, typename Response>
  struct Call;
  template <typename Request, typename Response, typename Start>
  std::shared_ptr<grpc::ClientContext> call(Milliseconds limit, const Request& request,
                                            Then<Response> then, Start start);

  EventLoop& loop_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<grpc::ClientContext>> open_;
  std::weak_ptr<grpc::ClientContext> acquire_;  ///< the newest poll
};

/// Transfers blobs over the channel of GrpcLink, with the resuming helpers of proto/wire.
class GrpcBlobs : public BlobTransfer {
 public:
  explicit GrpcBlobs(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}
  grpc::Status download(const std::string& digest, std::uint64_t size_bytes,
                        const std::filesystem::path& to, const std::atomic<bool>& abandon) override;
  grpc::Status upload(const std::filesystem::path& from, const std::string& digest,
                      std::uint64_t size_bytes, const std::atomic<bool>& abandon) override;

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

/// A few threads for work that blocks. Its destructor finishes the work that has begun and drops
/// the rest.
class ThreadPool : public Background {
 public:
  ThreadPool(EventLoop& loop, int n_threads);
  ~ThreadPool() override;
  void run(std::function<void()> work, std::function<void()> done) override;

 private:
  void serve();

  EventLoop& loop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quasi
