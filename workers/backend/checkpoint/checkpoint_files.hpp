#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "workers/backend/progress.hpp"

namespace quasi {

/// The checkpoints of a job: files "ckpt-STEP" in one directory, each complete or absent. STEP
/// rises by one with every checkpoint, over all attempts of the job.
///
/// The names are a contract with the worker daemon, which copies each file away while the job goes
/// on and lays the newest of an earlier attempt into the directory before the next. A file is
/// therefore never written twice, and the one before the newest stays: it may still be being read.
class CheckpointFiles {
 public:
  /// Keeps nothing.
  CheckpointFiles() = default;
  explicit CheckpointFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// False: nothing is kept, and nothing need be packed.
  bool keeps() const { return !directory_.empty(); }
  std::vector<std::filesystem::path> newest_first() const;
  /// Has `write` fill a temporary file, makes it the newest checkpoint, durably, and announces it.
  /// @throws StorageError if it cannot be written, and whatever `write` throws.
  void add(const std::function<void(const std::filesystem::path&)>& write,
           Progress& progress) const;
  /// Free bytes of the disk; 0 where no checkpoints are kept.
  std::int64_t free_disk_bytes() const;
  /// The job is done.
  void remove_all() const;

 private:
  std::filesystem::path directory_;
};

}  // namespace quasi
