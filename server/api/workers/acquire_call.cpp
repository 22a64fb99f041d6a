// AcquireLeases is a long poll. It is answered when a job fits the worker or when the wait is over.

#include <memory>
#include <mutex>

#include "server/api/calls.hpp"
#include "server/api/convert.hpp"
#include "server/api/worker_service.hpp"
#include "server/api/workers/worker_calls.hpp"

namespace quasi::server {
namespace {

/// An open AcquireLeases call. At any moment it is with the writer, parked, or finished. Only the
/// holder of that right continues the call, as in PumpedStream.
class AcquireCall : public grpc::ServerUnaryReactor,
                    public HubListener,
                    public std::enable_shared_from_this<AcquireCall> {
 public:
  AcquireCall(Services& services, grpc::CallbackServerContext* context,
              const v1::AcquireLeasesRequest* request, v1::AcquireLeasesResponse* response,
              const Caller& caller)
      : services_(services),
        context_(context),
        request_(request),
        response_(response),
        caller_(caller) {}

  void start(const wire::Violations& violations) {
    self_ = shared_from_this();
    if (!violations.empty()) return quasi::server::finish(this, context_, to_status(violations));
    // Conversion is safe only after validation, because durations beyond the limits do not fit
    // milliseconds.
    begun_ms_ = services_.clock.now().monotonic_ms;
    deadline_ms_ = begun_ms_ + to_milliseconds(request_->wait());
    services_.hub.add(self_);
    ask();
  }

  void on_commit(const GroupOutcome& outcome) override {
    if (outcome.jobs_ready) unpark(Why::kReady);
  }
  void on_tick(std::int64_t monotonic_ms) override {
    if (monotonic_ms >= deadline_ms_) return unpark(Why::kOver);
    if (lost_right(services_, caller_, kMethod)) unpark(Why::kReady);
  }
  void on_close() override { unpark(Why::kOver); }
  void OnCancel() override { unpark(Why::kOver); }
  void OnDone() override { const auto self = std::move(self_); }

 private:
  static constexpr char kMethod[] = "AcquireLeases";
  enum class Why { kReady, kOver };

  void unpark(Why why) {
    {
      const std::lock_guard lock(mutex_);
      if (why == Why::kOver) over_ = true;
      if (!parked_) return;
      parked_ = false;
    }
    if (why == Why::kReady)
      ask();
    else
      Finish(grpc::Status::OK);  // no grant; a cancelled call has no listener
  }

  void ask() {
    auto self = shared_from_this();
    auto acquired = std::make_shared<Acquired>();
    const bool posted = services_.writer.post(
        {.body =
             [self, acquired](WriteContext& write) {
               require_awaited(self->context_);
               // A worker whose token was revoked while it waited gets no job.
               self->services_.directory.require_still(self->caller_, write.now.wall_ms);
               const std::int64_t waited_ms = write.now.monotonic_ms - self->begun_ms_;
               *acquired = write.queue.apply(to_command(*self->request_, waited_ms), write.now);
             },
         .done = [self,
                  acquired](const std::exception_ptr& error) { self->answered(error, *acquired); },
         .checks_first = true});
    if (!posted) quasi::server::finish(this, context_, busy_status(services_.draining));
  }

  void answered(const std::exception_ptr& error, const Acquired& acquired) {
    if (error) return quasi::server::finish(this, context_, to_status(error, kMethod));
    if (acquired.grants.empty()) {
      const std::lock_guard lock(mutex_);
      if (!over_ && services_.clock.now().monotonic_ms < deadline_ms_) {
        parked_ = true;
        return;
      }
    }
    add_grants(acquired, services_.options, *response_);
    Finish(grpc::Status::OK);
  }

  Services& services_;
  grpc::CallbackServerContext* context_;
  const v1::AcquireLeasesRequest* request_;
  v1::AcquireLeasesResponse* response_;
  const Caller caller_;
  std::int64_t begun_ms_ = 0, deadline_ms_ = 0;  ///< monotonic
  std::shared_ptr<AcquireCall> self_;
  std::mutex mutex_;
  bool parked_ = false;
  bool over_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* acquire_leases(Services& services, grpc::CallbackServerContext* context,
                                         const v1::AcquireLeasesRequest* request,
                                         v1::AcquireLeasesResponse* response,
                                         const Caller& caller) {
  const auto call = std::make_shared<AcquireCall>(services, context, request, response, caller);
  AcquireCall* reactor = call.get();
  call->start(violations_of(*request));
  return reactor;
}

}  // namespace quasi::server
