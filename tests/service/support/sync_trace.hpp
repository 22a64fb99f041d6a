#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace quasi::test {

/// Records the calls that decide what a power loss leaves behind: fsync, fdatasync and rename.
///
/// A test that links sync_trace.cpp replaces these functions of the C library for its whole
/// program. The replacements do the work through the system call and record it while a trace is
/// alive. One trace at a time.
class SyncTrace {
 public:
  struct Call {
    enum class Kind { kSync, kRename } kind;
    std::string path;           ///< file or directory; for a rename, the old name
    std::string to;             ///< for a rename, the new name
    std::int64_t size_bytes{};  ///< size of the file at that moment; 0 for a directory
    std::thread::id thread;     ///< the thread that made the call
  };

  SyncTrace();
  ~SyncTrace();
  SyncTrace(const SyncTrace&) = delete;
  SyncTrace& operator=(const SyncTrace&) = delete;

  /// Makes every sync of a path that contains `part` fail with `error`, an errno value.
  void fail_syncs_of(const std::string& part, int error);

  std::vector<Call> calls() const;

  /// Index of the first sync of `path` with `size_bytes` bytes; -1 if there is none.
  int sync_of(const std::string& path, std::int64_t size_bytes) const;
  /// Index of the first sync of the directory; -1 if there is none after index `after`.
  int directory_sync_of(const std::string& path, int after) const;
  /// Index of the first rename to `to`; -1 if there is none.
  int rename_to(const std::string& to) const;
};

}  // namespace quasi::test
