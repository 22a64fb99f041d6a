#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "server/api/access/admit.hpp"
#include "server/api/services.hpp"
#include "server/api/status.hpp"

namespace quasi::server {

/// Begin here: a server stream that is a cursor over the store. log_stream.cpp and watch_stream.cpp
/// derive from it. It reads a page on a reader's thread, writes the page message by message with
/// one write outstanding, and reads the next page. If there is nothing to read, it sleeps until a
/// commit wakes it. It holds one page at most, even for a slow reader.
///
/// At any moment the stream is in exactly one state: a page is being read, a write is outstanding,
/// it is idle, or it is finished. Only the owner of the state continues, so no lock is held while
/// gRPC is called. `this` is not used after a call to gRPC that starts the next step.
///
/// A stream ends when the token of its caller is revoked or expires. It asks before each message,
/// and at each tick while it is idle.
template <class Message>
class PumpedStream : public grpc::ServerWriteReactor<Message>,
                     public HubListener,
                     public std::enable_shared_from_this<PumpedStream<Message>> {
 public:
  /// @param admission  of a caller; the stream keeps its place until the end
  PumpedStream(Services& services, grpc::CallbackServerContext* context, const Admission& admission)
      : services_(services),
        context_(context),
        scope_(scope_of(*admission.caller)),
        caller_(*admission.caller),
        place_(admission.place),
        admitted_ms_(services.clock.now().monotonic_ms) {}

  /// Begins to read. The stream keeps itself alive until gRPC is done with it.
  void start() {
    self_ = this->shared_from_this();
    services_.hub.add(self_);
    read_page();
  }
  /// Ends a stream that was never started.
  void refuse(const grpc::Status& status) {
    self_ = this->shared_from_this();
    this->Finish(status);
  }

  void on_commit(const GroupOutcome& outcome) override {
    if (!outcome.wrote) return;
    {
      // A stream that is not idle may be reading the changed rows, so it reads once more.
      const std::lock_guard lock(mutex_);
      if (idle_ && !is_concerned(outcome)) return;
    }
    wake();
  }
  void on_tick(std::int64_t monotonic_ms) override {
    const bool lost = lost_right(services_, caller_, method()).has_value();
    {
      const std::lock_guard lock(mutex_);
      if (done_) return;
      if (!lost) admitted_ms_ = monotonic_ms;
      if (monotonic_ms - admitted_ms_ > kStatusPatienceMs) return context_->TryCancel();
      if (!idle_ || finishing_ || !(lost || tick_due(monotonic_ms))) return;
    }
    wake();
  }
  void on_close() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake();
  }

  void OnWriteDone(bool ok) final {
    if (!ok) return finish(grpc::Status(grpc::StatusCode::CANCELLED, "the reader has gone"));
    page_.pop_front();
    if (const auto lost = lost_right(services_, caller_, method())) return finish(*lost);
    if (!page_.empty()) return write_front();
    read_page();
  }
  void OnCancel() final {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    wake();
  }
  void OnDone() final {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    on_done();
    const auto self = std::move(self_);  // this may be the last reference
  }

 protected:
  enum class Next {
    kWrite,   ///< messages were added to the page
    kAgain,   ///< nothing to write yet, but there is more to read
    kIdle,    ///< there is nothing new; the next commit that concerns the stream wakes it
    kFinish,  ///< `status` ends the stream, after the page
  };
  /// Messages that are written one after another. Streams may share them.
  using Page = std::deque<std::shared_ptr<const Message>>;
  /// Reads the next messages into `page`. It may throw Refused.
  virtual Next fill(ReadStore& store, Page& page, grpc::Status& status) = 0;
  /// True if an idle stream must be woken at this time. It is called under the stream's lock.
  virtual bool tick_due(std::int64_t) { return false; }
  /// True if an idle stream has something to write after this commit. It is called on the writer's
  /// thread, under the stream's lock, while no page is being read; it must not read the store.
  virtual bool is_concerned(const GroupOutcome&) const { return true; }
  virtual void on_done() {}
  virtual const char* method() const = 0;

  Services& services_;
  grpc::CallbackServerContext* context_;
  const Scope scope_;  ///< the jobs of which the caller may learn

 private:
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
      if (!idle_ || finishing_) return;
      idle_ = false;
    }
    read_page();
  }

  /// The caller must own the state of the stream (see above).
  void read_page() {
    grpc::Status end;
    bool ending = false;
    {
      const std::lock_guard lock(mutex_);
      woken_ = false;
      if (cancelled_) {
        ending = true;
        end = grpc::Status(grpc::StatusCode::CANCELLED, "the reader has gone");
      } else if (closed_) {
        ending = true;
        end = busy_status(true);
      } else if (const auto lost = lost_right(services_, caller_, method())) {
        ending = true;
        end = *lost;
      }
    }
    if (ending || last_status_set_) return finish(ending ? end : last_status_);
    auto self = this->shared_from_this();
    if (!services_.readers.read([self](ReadStore& store) { self->pump(store); }))
      finish(busy_status(services_.draining));
  }

  void pump(ReadStore& store) {
    grpc::Status status;
    Next next = Next::kFinish;
    try {
      next = fill(store, page_, status);
    } catch (...) {
      status = to_status(std::current_exception(), method());
    }
    if (next == Next::kFinish) {
      last_status_set_ = true;
      last_status_ = status;
    }
    if (!page_.empty()) return write_front();
    if (next == Next::kFinish) return finish(status);
    if (next == Next::kIdle) {
      const std::lock_guard lock(mutex_);
      // A commit during the read may not be part of the page.
      if (!woken_ && !cancelled_ && !closed_) {
        idle_ = true;
        return;
      }
    }
    read_page();
  }

  /// A message may wait in gRPC's buffer for those behind it in the page, so that they leave in few
  /// packets. The first one of a stream must not: gRPC never completes a write that waits together
  /// with the initial metadata.
  void write_front() {
    const bool may_wait = std::exchange(has_written_, true) && page_.size() > 1;
    const Message* message = page_.front().get();
    this->StartWrite(message,
                     may_wait ? grpc::WriteOptions().set_buffer_hint() : grpc::WriteOptions());
  }

  void finish(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (finishing_) return;
      finishing_ = true;
    }
    this->Finish(status);
  }

  const Caller caller_;
  const StreamPlace place_;
  Page page_;
  bool has_written_ = false;
  std::shared_ptr<PumpedStream> self_;
  bool last_status_set_ = false;
  grpc::Status last_status_;
  std::mutex mutex_;
  bool idle_ = false;
  bool woken_ = false;
  bool cancelled_ = false;
  bool closed_ = false;
  bool finishing_ = false;
  bool done_ = false;
  std::int64_t admitted_ms_;  ///< last tick at which the caller had the right to the stream
};

}  // namespace quasi::server
