#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace quasi::client {

/// A submission that was not sent yet, or was sent without an answer.
struct PendingSubmission {
  std::string request_id;  ///< UUID; the server answers a repeated request with its first answer
  std::int64_t created_ms = 0;
  std::string address;       ///< address of the server for which it was made
  std::string store_id;      ///< id of that server's store
  std::string request_json;  ///< SubmitJobsRequest in protobuf's JSON mapping
};

/// The client's memory between commands, below one directory:
///
///     pending/<request id>.json   submissions without an answer
///     last.json                   ids of the newest submission
///
/// Every file is whole or absent after a crash. Several commands may run at once: entries have
/// unique names, and the last writer of `last` wins.
class State {
 public:
  explicit State(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Writes and syncs the entry before the request is sent. @throws Failure (kLocalFile).
  void add_pending(const PendingSubmission& submission) const;
  void remove_pending(const std::string& request_id) const;
  /// The pending submissions, oldest first. An unreadable entry gives a Failure (kLocalFile) naming
  /// it.
  std::vector<PendingSubmission> pending() const;
  /// The number of entries. It reads only their names, so every command can afford it.
  std::size_t pending_count() const;

  void remember_last(const std::vector<std::string>& job_ids) const;
  /// The ids of the newest submission; empty if there was none.
  std::vector<std::string> last() const;

  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path pending_path(const std::string& request_id) const;
  std::filesystem::path directory_;
};

}  // namespace quasi::client
