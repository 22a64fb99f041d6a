#include "workers/daemon/ports/grpc_link.hpp"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "proto/wire/chunks.hpp"

namespace quasi {
namespace {

// Time limit of a call. A call without an answer counts as lost contact; every call may be
// repeated.
constexpr Milliseconds kCallLimit{10'000};
constexpr Milliseconds kAcquireSlack{10'000};

wire::TransferOptions options(const std::atomic<bool>& abandon) {
  wire::TransferOptions options;
  options.cancelled = [&abandon] { return abandon.load(); };
  return options;
}

}  // namespace

template <typename Request, typename Response>
struct GrpcLink::Call {
  grpc::ClientContext context;
  Request request;
  Response response;
  Then<Response> then;
};

GrpcLink::GrpcLink(EventLoop& loop, std::shared_ptr<grpc::Channel> channel)
    : loop_(loop), stub_(v1::WorkerService::NewStub(std::move(channel))) {}

GrpcLink::~GrpcLink() {
  std::unique_lock lock(mutex_);
  const auto open = open_;
  lock.unlock();
  for (const auto& context : open) context->TryCancel();
  lock.lock();
  changed_.wait(lock, [&] { return open_.empty(); });
}

template <typename Request, typename Response, typename Start>
std::shared_ptr<grpc::ClientContext> GrpcLink::call(Milliseconds limit, const Request& request,
                                                    Then<Response> then, Start start) {
  auto call = std::make_shared<Call<Request, Response>>();
  call->request = request;
  call->then = std::move(then);
  call->context.set_deadline(std::chrono::system_clock::now() + limit);
  const std::shared_ptr<grpc::ClientContext> context(call, &call->context);
  {
    const std::lock_guard lock(mutex_);
    open_.insert(context);
  }
  start(context.get(), &call->request, &call->response, [this, call, context](grpc::Status status) {
    loop_.post([call, status] { call->then(status, call->response); });
    const std::lock_guard lock(mutex_);
    open_.erase(context);
    changed_.notify_all();
  });
  return context;
}

void GrpcLink::register_worker(const v1::RegisterRequest& request,
                               Then<v1::RegisterResponse> then) {
  call(kCallLimit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->Register(arguments...); });
}

void GrpcLink::acquire(const v1::AcquireLeasesRequest& request,
                       Then<v1::AcquireLeasesResponse> then) {
  const Milliseconds wait(google::protobuf::util::TimeUtil::DurationToMilliseconds(request.wait()));
  acquire_ = call(wait + kAcquireSlack, request, std::move(then),
                  [this](auto... arguments) { stub_->async()->AcquireLeases(arguments...); });
}

void GrpcLink::cancel_acquire() {
  if (const auto context = acquire_.lock()) context->TryCancel();
}

void GrpcLink::heartbeat(const v1::HeartbeatRequest& request, Milliseconds limit,
                         Then<v1::HeartbeatResponse> then) {
  call(limit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->Heartbeat(arguments...); });
}

void GrpcLink::start_attempt(const v1::StartAttemptRequest& request,
                             Then<v1::StartAttemptResponse> then) {
  call(kCallLimit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->StartAttempt(arguments...); });
}

void GrpcLink::append_log(const v1::AppendLogRequest& request, Then<v1::AppendLogResponse> then) {
  call(kCallLimit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->AppendLog(arguments...); });
}

void GrpcLink::record_checkpoint(const v1::RecordCheckpointRequest& request,
                                 Then<v1::RecordCheckpointResponse> then) {
  call(kCallLimit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->RecordCheckpoint(arguments...); });
}

void GrpcLink::complete(const v1::CompleteAttemptRequest& request,
                        Then<v1::CompleteAttemptResponse> then) {
  call(kCallLimit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->CompleteAttempt(arguments...); });
}

void GrpcLink::release(const v1::ReleaseLeaseRequest& request,
                       Then<v1::ReleaseLeaseResponse> then) {
  call(kCallLimit, request, std::move(then),
       [this](auto... arguments) { stub_->async()->ReleaseLease(arguments...); });
}

grpc::Status GrpcBlobs::download(const std::string& digest, std::uint64_t size_bytes,
                                 const std::filesystem::path& to,
                                 const std::atomic<bool>& abandon) {
  return wire::download_file(channel_, digest, size_bytes, to, options(abandon));
}

grpc::Status GrpcBlobs::upload(const std::filesystem::path& from, const std::string& digest,
                               std::uint64_t size_bytes, const std::atomic<bool>& abandon) {
  return wire::upload_file(channel_, from, digest, size_bytes, options(abandon));
}

ThreadPool::ThreadPool(EventLoop& loop, int n_threads) : loop_(loop) {
  for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { serve(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::run(std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(std::move(work), std::move(done));
  }
  changed_.notify_one();
}

void ThreadPool::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    auto [work, done] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    loop_.post(std::move(done));
    lock.lock();
  }
}

}  // namespace quasi
