// ReadLogs streams the committed bytes of an attempt's log.

#include <algorithm>

#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "server/api/job_service.hpp"
#include "server/api/streams/pumped_stream.hpp"

namespace quasi::server {
namespace {

class LogStream : public PumpedStream<v1::ReadLogsResponse> {
 public:
  LogStream(Services& services, grpc::CallbackServerContext* context,
            const v1::ReadLogsRequest& request, const Admission& admission)
      : PumpedStream(services, context, admission), request_(request), offset_(request.offset()) {}

 protected:
  const char* method() const override { return "ReadLogs"; }

  bool is_concerned(const GroupOutcome& outcome) const override {
    return std::any_of(outcome.changes.begin(), outcome.changes.end(),
                       [this](const Change& change) { return change.job == job_; });
  }

  Next fill(ReadStore& store, Page& page, grpc::Status&) override {
    if (job_ == 0) {
      const auto view = store.find(scope_, request_.job_id());
      if (!view)
        throw Refused(Refusal::kNotFound, wire::reason::kJob,
                      "there is no job " + request_.job_id());
      job_ = view->row.id;
      number_ = static_cast<std::int32_t>(std::min<std::uint32_t>(request_.attempt(), 1'000'000));
    }
    const auto log = store.log_of(job_, number_);
    if (!log) {
      if (number_ == 0 && request_.follow()) {
        // A job has no log before its first grant, and it may end without one.
        const auto view = store.find(scope_, request_.job_id());
        return view && is_final(view->row.state) ? Next::kFinish : Next::kIdle;
      }
      if (number_ == 0) return Next::kFinish;
      throw Refused(Refusal::kNotFound, wire::reason::kAttempt,
                    "job " + request_.job_id() + " has no attempt " + std::to_string(number_));
    }
    number_ = log->number;  // the newest attempt at the beginning; a later attempt has its own log
    const auto length = static_cast<std::uint64_t>(log->bytes);
    if (offset_ > length && log->ended)
      throw Refused(Refusal::kOutOfRange, wire::reason::kOffsetPastEnd,
                    "offset: the log has " + std::to_string(length) + " bytes, fewer than " +
                        std::to_string(offset_));
    if (offset_ >= length) return log->ended || !request_.follow() ? Next::kFinish : Next::kIdle;
    const auto size =
        static_cast<std::int64_t>(std::min<std::uint64_t>(length - offset_, limits::kChunkBytes));
    v1::ReadLogsResponse response;
    response.set_attempt(static_cast<std::uint32_t>(number_));
    response.set_offset(offset_);
    response.set_data(read(store, *log, size));
    if (response.data().empty())
      throw std::runtime_error("log of " + log->attempt_uid + " is shorter than its committed " +
                               std::to_string(length) + " bytes");
    offset_ += response.data().size();
    page.push_back(std::make_shared<v1::ReadLogsResponse>(std::move(response)));
    return Next::kWrite;
  }

 private:
  /// Bytes from `offset_` on: those in the database, else those in the file.
  std::string read(ReadStore& store, const LogView& log, std::int64_t size) {
    const auto offset = static_cast<std::int64_t>(offset_);
    std::string tail = store.log_tail(log.attempt, offset, size);
    if (!tail.empty()) return tail;
    // Bytes that were folded since the length was read are in the file, too.
    const std::int64_t in_file =
        log.folded_bytes > offset ? std::min(size, log.folded_bytes - offset) : size;
    try {
      return services_.logs.read(log.attempt_uid, offset, in_file);
    } catch (const FileError& error) {
      if (!error.is_missing() || store.find(scope_, request_.job_id())) throw;
      throw Refused(Refusal::kNotFound, wire::reason::kJob,
                    "job " + request_.job_id() + " was deleted");
    }
  }

  const v1::ReadLogsRequest request_;
  RowId job_ = 0;
  std::int32_t number_ = 0;
  std::uint64_t offset_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadLogsResponse>* read_logs(Services& services,
                                                          grpc::CallbackServerContext* context,
                                                          const v1::ReadLogsRequest& request,
                                                          const Admission& admission) {
  const auto stream = std::make_shared<LogStream>(services, context, request, admission);
  wire::Violations violations;
  wire::validate(request, violations);
  LogStream* reactor = stream.get();
  if (violations.empty())
    stream->start();
  else
    stream->refuse(to_status(violations));
  return reactor;
}

}  // namespace quasi::server
