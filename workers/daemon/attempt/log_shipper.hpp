#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/ports/clock.hpp"
#include "workers/daemon/ports/server_link.hpp"

namespace quasi {

/// Sends one attempt's log file to the server as it grows: one call at a time, from the offset that
/// the server last confirmed. Where server and file disagree on the offset, the server is right.
class LogShipper : public std::enable_shared_from_this<LogShipper> {
 public:
  LogShipper(FileSystem& files, ServerLink& server, v1::AttemptRef attempt,
             std::filesystem::path log, std::function<void()> on_fenced);

  /// Sends what is new, if nothing is under way.
  void pump();
  /// As pump; `done` is called once all of the file is at the server, or it wants no more.
  void flush(std::function<void()> done);
  /// A call failed for want of contact: pump again later. Cleared by pump.
  bool wants_retry() const { return retry_; }

 private:
  void answered(const grpc::Status& status, const v1::AppendLogResponse& response,
                std::uint64_t sent_to);
  void settle();

  FileSystem& files_;
  ServerLink& server_;
  v1::AttemptRef attempt_;
  std::filesystem::path log_;
  std::function<void()> on_fenced_;
  std::function<void()> flushed_;
  std::uint64_t offset_ = 0;
  bool in_flight_ = false;
  bool retry_ = false;
  bool closed_ = false;  ///< nothing more will be sent
  int mismatches_ = 0;
};

}  // namespace quasi
