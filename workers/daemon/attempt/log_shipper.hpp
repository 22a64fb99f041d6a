#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/ports/clock.hpp"
#include "workers/daemon/ports/server_link.hpp"

namespace quasi {

/// Sends the log file of one attempt to the server as it grows. One call is under way at a time,
/// from the offset that the server last confirmed. If server and file disagree on the offset, the
/// server's offset is used.
class LogShipper : public std::enable_shared_from_this<LogShipper> {
 public:
  LogShipper(FileSystem& files, ServerLink& server, v1::AttemptRef attempt,
             std::filesystem::path log, std::function<void()> on_fenced);

  /// Sends the new bytes if no call is under way.
  void pump();
  /// Sends the new bytes. `done` is called when the whole file is at the server or the server
  /// refuses more.
  void flush(std::function<void()> done);
  /// Returns true if a call failed for lack of contact, so that pump() is to be called again later.
  /// pump() clears it.
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
  bool closed_ = false;  ///< true if nothing more will be sent
  int mismatches_ = 0;
};

}  // namespace quasi
