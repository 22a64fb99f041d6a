#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace quasi::client {

/// A submission that was about to be sent, or was sent without an answer.
struct PendingSubmission {
  std::string request_id;  ///< UUID; the server answers a repeated one with its first answer
  std::int64_t created_ms = 0;
  std::string address;       ///< of the server it was meant for
  std::string store_id;      ///< of that server's store
  std::string request_json;  ///< SubmitJobsRequest in protobuf's JSON mapping
};

/// What the client remembers between commands, below one directory:
///
///     pending/<request id>.json   submissions without an answer
///     last.json                   ids of the newest submission
///
/// Every file is whole or absent after a crash. Several commands may run at once: entries have
/// names of their own, and `last` is whoever came last.
class State {
 public:
  explicit State(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Written and synced before the request leaves. @throws Failure (kLocalFile).
  void add_pending(const PendingSubmission& submission) const;
  void remove_pending(const std::string& request_id) const;
  /// Oldest first. A file that cannot be read as an entry is a Failure (kLocalFile) naming it.
  std::vector<PendingSubmission> pending() const;
  /// Names of entries alone, cheap enough for every command.
  std::size_t pending_count() const;

  void remember_last(const std::vector<std::string>& job_ids) const;
  /// Empty if nothing was submitted from here yet.
  std::vector<std::string> last() const;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path pending_path(const std::string& request_id) const;
  std::filesystem::path directory_;
};

}  // namespace quasi::client
