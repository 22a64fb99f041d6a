// ReadBlob streams a file in chunks and hashes it on the way. While gRPC sends one chunk, a file
// thread reads and hashes the next one. These two chunks are in memory.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "proto/wire/digest.hpp"
#include "proto/wire/limits.hpp"
#include "server/api/blob_service.hpp"
#include "server/api/calls.hpp"
#include "server/service/log.hpp"
#include "server/service/scrub.hpp"

namespace quasi::server {
namespace {

/// Hashes the whole file, even if only a part was requested. The last chunk is sent only after the
/// hash was found right, so no reader receives the end of a corrupt blob. A reader that continues
/// in the middle starts from the hash state of an earlier stream (HashMarks).
class ReadBlobStream : public grpc::ServerWriteReactor<v1::ReadBlobResponse>,
                       public HubListener,
                       public std::enable_shared_from_this<ReadBlobStream> {
 public:
  ReadBlobStream(Services& services, grpc::CallbackServerContext* context,
                 const v1::ReadBlobRequest& request, const Admission& admission)
      : services_(services),
        context_(context),
        request_(request),
        caller_(*admission.caller),
        scope_(scope_of(caller_)),
        place_(admission.place),
        admitted_ms_(services.clock.now().monotonic_ms) {}

  void start() {
    self_ = shared_from_this();
    wire::Violations violations;
    wire::validate(request_, violations);
    if (!violations.empty()) return end(to_status(violations));
    services_.hub.add(self_);
    auto self = self_;
    const bool posted = services_.readers.read([self](ReadStore& store) { self->begin(store); });
    if (!posted) end(busy_status(services_.draining));
  }

  void on_commit(const GroupOutcome&) override {}
  void on_tick(std::int64_t monotonic_ms) override {
    const std::int64_t limit = services_.options.slow_reader_ms;
    bool slow = false;
    bool cut = false;
    {
      const std::lock_guard lock(mutex_);
      const std::int64_t waited = write_since_ms_ > 0 ? monotonic_ms - write_since_ms_ : 0;
      slow = !finished_ && waited > limit;
      cut = waited > 2 * limit;
      if (slow) finished_ = true;
    }
    if (slow) {
      log(Level::kInfo, "slow_reader", {{"digest", request_.digest()}});
      Finish(to_status(Refused(Refusal::kDeadlineExceeded, wire::reason::kSlowReader,
                               "the reader took no bytes for " + std::to_string(limit / 1000) +
                                   " s; continue from the last byte you have")));
    }
    // The status cannot overtake a chunk that the reader does not take. The connection of such a
    // reader is reset.
    if (cut) cancel();
    if (!lost_right(services_, caller_, "ReadBlob"))
      admitted_ms_ = monotonic_ms;
    else if (monotonic_ms - admitted_ms_ > kStatusPatienceMs)
      cancel();
  }
  void on_close() override { cancel(); }

  void OnWriteDone(bool ok) override {
    const auto lost = lost_right(services_, caller_, "ReadBlob");
    bool send = false;
    bool complete = false;
    {
      const std::lock_guard lock(mutex_);
      write_since_ms_ = 0;
      is_writing_ = false;
      if (finished_) return;
      finished_ = ok && lost;
      send = ok && !lost && take_prepared();
      complete = ok && !send && all_prepared_;
    }
    if (ok && lost) return Finish(*lost);
    if (!ok) return end(grpc::Status(grpc::StatusCode::CANCELLED, "the reader has gone"));
    if (complete) return end(grpc::Status::OK);
    if (send) start_write();
  }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    const auto self = std::move(self_);
  }

 private:
  void end(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      finished_ = true;
    }
    Finish(status);
  }

  void cancel() {
    const std::lock_guard lock(mutex_);  // the context is destroyed after OnDone
    if (!done_) context_->TryCancel();
  }

  void begin(ReadStore& store) {
    grpc::Status status;
    try {
      const auto size = store.blob_size(scope_, request_.digest());
      if (!size && store.blob_is_corrupt(scope_, request_.digest())) throw corrupt();
      if (!size) throw missing();
      size_ = static_cast<std::uint64_t>(*size);
      created_ms_ = store.blob_created_ms(scope_, request_.digest()).value_or(0);
      if (request_.offset() > size_)
        throw Refused(Refusal::kOutOfRange, wire::reason::kOffsetPastEnd,
                      "offset: the blob has " + std::to_string(size_) + " bytes, fewer than " +
                          std::to_string(request_.offset()));
      position_ = request_.offset();
      end_ =
          request_.limit() == 0 ? size_ : position_ + std::min(request_.limit(), size_ - position_);
      return next();
    } catch (...) {
      status = to_status(std::current_exception(), "ReadBlob");
    }
    end(status);
  }

  Refused missing() const {
    return Refused(Refusal::kNotFound, wire::reason::kBlob,
                   "there is no blob " + request_.digest());
  }

  Refused corrupt() const {
    return Refused(Refusal::kDataLoss, wire::reason::kBlobCorrupt,
                   "blob " + request_.digest() +
                       " is damaged on the server's disk and is not served; upload it again, or "
                       "run the job that made it again");
  }

  void next() {
    auto self = shared_from_this();
    if (!services_.files.post([self] { self->prepare_chunk(); }))
      end(busy_status(services_.draining));
  }

  /// Moves the prepared chunk to `sent_`, if there is one and gRPC has done with the chunk before.
  /// Called with `mutex_` held.
  bool take_prepared() {
    if (is_writing_ || !is_prepared_) return false;
    std::swap(sent_, prepared_);
    is_prepared_ = false;
    is_writing_ = true;
    write_since_ms_ = services_.clock.now().monotonic_ms;
    return true;
  }

  /// Sends the chunk taken by take_prepared(), and lets the next one be prepared meanwhile.
  void start_write() {
    const auto self = shared_from_this();
    services_.file_figures.sent_bytes += static_cast<std::int64_t>(sent_.data().size());
    StartWrite(&sent_);
    if (position_ < end_) next();
  }

  void prepare_chunk() {
    grpc::Status status;
    try {
      if (cancelled_) {
        status = grpc::Status(grpc::StatusCode::CANCELLED, "the reader has gone");
      } else if (const auto lost = lost_right(services_, caller_, "ReadBlob")) {
        status = *lost;
      } else {
        read_chunk();
        bool send = false;
        {
          const std::lock_guard lock(mutex_);
          if (finished_) return;
          is_prepared_ = true;
          all_prepared_ = position_ >= end_;
          send = take_prepared();
        }
        if (send) start_write();
        return;
      }
    } catch (const FileError& error) {
      if (error.is_missing()) return lose();
      status = to_status(std::current_exception(), "ReadBlob");
    } catch (const Damaged&) {
      return lose();
    } catch (...) {
      status = to_status(std::current_exception(), "ReadBlob");
    }
    end(status);
  }

  struct Damaged {};

  /// Fills `prepared_` with the next chunk. Before the last chunk it hashes the rest of the file.
  void read_chunk() {
    if (!file_) open();
    hash_up_to(position_);
    const std::uint64_t size = std::min<std::uint64_t>(limits::kChunkBytes, end_ - position_);
    std::string& data = *prepared_.mutable_data();
    data.resize(size);
    if (file_->read(position_, data.data(), size) != size) throw Damaged{};
    hash(data);
    prepared_.set_offset(position_);
    prepared_.set_size_bytes(size_);
    position_ += size;
    if (position_ < end_) return;
    hash_up_to(size_);
    if (file_->size() != size_) throw Damaged{};
    if (hash_.finish_hex() == request_.digest()) return;
    services_.hash_marks.forget(request_.digest());
    // The mark may belong to a damaged file that has been uploaded again since.
    if (!std::exchange(continued_, false)) throw Damaged{};
    hash_ = wire::Sha256();
    hashed_ = 0;
    hash_up_to(size_);
    if (hash_.finish_hex() != request_.digest()) throw Damaged{};
  }

  void open() {
    file_ = services_.blobs.open(request_.digest());
    auto mark = services_.hash_marks.before(request_.digest(), position_);
    if (!mark) return;
    continued_ = true;
    hash_ = std::move(mark->state);
    hashed_ = marked_ = mark->bytes;
  }

  void hash(std::string_view data) {
    hash_.update(data);
    hashed_ += data.size();
    const std::uint64_t spacing = HashMarks::spacing(size_);
    if (hashed_ < marked_ + spacing) return;
    marked_ = hashed_;
    services_.hash_marks.put(request_.digest(), hashed_, hash_, spacing);
  }

  void hash_up_to(std::uint64_t end) {
    if (hashed_ >= end) return;
    std::string buffer(limits::kUploadChunkBytes, '\0');
    while (hashed_ < end) {
      const std::uint64_t size = std::min<std::uint64_t>(buffer.size(), end - hashed_);
      if (cancelled_ || file_->read(hashed_, buffer.data(), size) != size) throw Damaged{};
      hash({buffer.data(), size});
    }
  }

  /// Marks the blob as corrupt, so that it is never served again, and ends the call only after the
  /// mark is committed. A caller that uploads the blob again must not be told that it is still
  /// present.
  void lose() {
    if (cancelled_) return end(grpc::Status(grpc::StatusCode::CANCELLED, "the reader has gone"));
    services_.hash_marks.forget(request_.digest());
    const auto self = shared_from_this();
    const bool posted = services_.writer.post(
        {.body =
             [self](WriteContext& write) {
               const std::string& digest = self->request_.digest();
               self->is_gone_ = !write.store.blob_state(digest);
               if (condemn_blob(write.store, self->services_.blobs, digest, self->created_ms_))
                 log(Level::kError, "blob_corrupt", {{"digest", digest}});
             },
         .done =
             [self](const std::exception_ptr&) {
               self->end(to_status(self->is_gone_ ? self->missing() : self->corrupt()));
             }});
    if (!posted) end(to_status(corrupt()));
  }

  Services& services_;
  grpc::CallbackServerContext* context_;
  const v1::ReadBlobRequest request_;
  const Caller caller_;
  const Scope scope_;
  const StreamPlace place_;
  std::shared_ptr<ReadBlobStream> self_;
  v1::ReadBlobResponse sent_;      ///< gRPC's while `is_writing_`
  v1::ReadBlobResponse prepared_;  ///< the file thread's until `is_prepared_`
  std::unique_ptr<FileSystem::File> file_;
  wire::Sha256 hash_;
  std::uint64_t size_ = 0;
  std::int64_t created_ms_ = 0;  ///< time of the blob's row
  bool is_gone_ = false;         ///< the blob was collected as garbage meanwhile
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t hashed_ = 0;
  std::uint64_t marked_ = 0;  ///< bytes hashed at the last mark
  bool continued_ = false;    ///< the hash began from a mark
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::int64_t write_since_ms_ = 0;  ///< monotonic clock; 0: no write is outstanding
  bool is_writing_ = false;
  bool is_prepared_ = false;
  bool all_prepared_ = false;  ///< no chunk follows the prepared one
  bool finished_ = false;
  bool done_ = false;
  /// Last tick at which the caller had the right to the stream; used by the timer's thread alone.
  std::int64_t admitted_ms_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadBlobResponse>* read_blob(Services& services,
                                                          grpc::CallbackServerContext* context,
                                                          const v1::ReadBlobRequest& request,
                                                          const Admission& admission) {
  const auto stream = std::make_shared<ReadBlobStream>(services, context, request, admission);
  ReadBlobStream* reactor = stream.get();
  stream->start();
  return reactor;
}

}  // namespace quasi::server
