#pragma once

#include <filesystem>
#include <string>

#include "workers/daemon/ports/file_system.hpp"

namespace quasi {

/// Lock on the state directory, which one daemon holds at a time.
class StateLock {
 public:
  /// @throws AlreadyRunning if another daemon holds it.
  explicit StateLock(const std::filesystem::path& state_directory);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  int descriptor_;
};

/// Returns "w_" and 26 base32 characters, read from STATE/worker_id. If the file is absent, an id
/// is made and stored there.
std::string load_worker_id(FileSystem& files, const std::filesystem::path& state_directory);

}  // namespace quasi
