#include "workers/daemon/attempt/log_shipper.hpp"

#include <charconv>

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "workers/daemon/ports/transient.hpp"

namespace quasi {
namespace {

constexpr int kMostMismatches = 8;

}  // namespace

LogShipper::LogShipper(FileSystem& files, ServerLink& server, v1::AttemptRef attempt,
                       std::filesystem::path log, std::function<void()> on_fenced)
    : files_(files),
      server_(server),
      attempt_(std::move(attempt)),
      log_(std::move(log)),
      on_fenced_(std::move(on_fenced)) {}

void LogShipper::pump() {
  if (in_flight_ || closed_) return;
  retry_ = false;
  std::string bytes = files_.read_range(log_, offset_, limits::kLogChunkBytes);
  if (bytes.empty()) return settle();
  v1::AppendLogRequest request;
  *request.mutable_attempt() = attempt_;
  request.set_offset(offset_);
  const std::uint64_t sent_to = offset_ + bytes.size();
  request.set_data(std::move(bytes));
  in_flight_ = true;
  server_.append_log(request,
                     [weak = weak_from_this(), sent_to](const grpc::Status& status,
                                                        const v1::AppendLogResponse& response) {
                       if (const auto self = weak.lock()) self->answered(status, response, sent_to);
                     });
}

void LogShipper::answered(const grpc::Status& status, const v1::AppendLogResponse& response,
                          std::uint64_t sent_to) {
  in_flight_ = false;
  if (status.ok()) {
    mismatches_ = 0;
    offset_ = sent_to;
    closed_ = response.full();
    return closed_ ? settle() : pump();
  }
  const wire::ErrorDetails details = wire::parse_details(status);
  if (details.reason == wire::reason::kFenced) {
    closed_ = true;
    return on_fenced_();
  }
  if (did_not_get_through(status)) {
    retry_ = true;
    return;
  }
  if (status.error_code() == grpc::StatusCode::ABORTED) {
    // The server names its length of the log. If it names one length repeatedly, the bytes differ.
    const auto length = details.metadata.find("length");
    std::uint64_t expected = 0;
    if (details.reason == wire::reason::kOffsetMismatch && length != details.metadata.end() &&
        ++mismatches_ < kMostMismatches)
      std::from_chars(length->second.data(), length->second.data() + length->second.size(),
                      expected);
    else
      closed_ = true;
    offset_ = expected;
    return closed_ ? settle() : pump();
  }
  // The log is for people. A server that refuses it must not end the attempt.
  closed_ = true;
  settle();
}

void LogShipper::flush(std::function<void()> done) {
  flushed_ = std::move(done);
  if (closed_)
    settle();
  else
    pump();
}

void LogShipper::settle() {
  if (in_flight_ || !flushed_) return;
  const auto done = std::move(flushed_);
  flushed_ = nullptr;
  done();
}

}  // namespace quasi
