#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "workers/backend/progress.hpp"

namespace quasi {

/// Begin here: workers/backend/checkpoint saves the progress of a job. This class writes the files;
/// checkpoint.hpp stores named pieces in them.
///
/// The checkpoints of a job are files "ckpt-STEP" in one directory, each complete or absent. STEP
/// rises by one with every checkpoint, over all attempts of the job.
///
/// The names are a contract with the worker daemon. It copies each file away while the job
/// continues. Before the next attempt it puts the newest file of an earlier attempt into the
/// directory. A file is therefore never written twice. The second newest file stays, because it may
/// still be read.
class CheckpointFiles {
 public:
  /// Keeps nothing.
  CheckpointFiles() = default;
  explicit CheckpointFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Returns false if nothing is kept, so that no piece need be packed.
  bool keeps() const { return !directory_.empty(); }
  /// Returns the checkpoints in the directory, the newest first.
  std::vector<std::filesystem::path> newest_first() const;
  /// Lets `write` fill a temporary file, makes it durably the newest checkpoint and announces it.
  /// @throws StorageError if it cannot be written. Exceptions of `write` pass through.
  void add(const std::function<void(const std::filesystem::path&)>& write,
           Progress& progress) const;
  /// Returns the free bytes of the disk, or 0 if no checkpoints are kept.
  std::int64_t free_disk_bytes() const;
  /// Removes all checkpoints, because the job is done.
  void remove_all() const;

 private:
  std::filesystem::path directory_;
};

}  // namespace quasi
