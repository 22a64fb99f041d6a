#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

/// Announces the additional calculations of a convergence study. Each gets its own checkpoint
/// directory, study_0, study_1, … below the directory of the job.
class StudyRunner {
 public:
  /// @param directory  checkpoint directory of the job; empty: no checkpoints are kept
  StudyRunner(std::filesystem::path directory, Ranks& ranks, Progress& progress)
      : directory_(std::move(directory)), ranks_(ranks), progress_(progress) {}

  /// Writes the calculation's name into the log. Rank 0 creates the directory. @return the
  /// checkpoint directory of this calculation; empty if none is kept @throws StorageError
  std::filesystem::path begin(const std::string& name);

 private:
  std::filesystem::path directory_;
  Ranks& ranks_;
  Progress& progress_;
  int n_begun_ = 0;
};

}  // namespace quasi
