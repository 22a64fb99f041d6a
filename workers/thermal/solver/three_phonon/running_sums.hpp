#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"

namespace quasi::thermal {

/// Directory and interval of checkpoints.
struct CheckpointRule {
  std::filesystem::path directory = {};  ///< empty: none
  double interval_s = 30.0;  ///< between two, unless the daemon asks; 0: after every piece
};

/// The checkpoint of a thermal job: running sums by name, each name with the digest of what is
/// summed.
Checkpoint open_checkpoint(const CheckpointRule& rule, Progress& progress);

/// One sum over numbered pieces that are added in their order, so that what follows from a
/// checkpoint has the same bits as an undisturbed run.
class RunningSums {
 public:
  /// Takes up the sum of this name where the checkpoint holds one of as many values; else starts at
  /// zero.
  /// @param digest  of everything the sum depends on
  RunningSums(Checkpoint& checkpoint, const std::string& name, std::uint64_t digest,
              std::size_t n_values, std::int64_t n_pieces);

  std::int64_t finished() const { return finished_; }
  /// [n_values] over the finished pieces.
  std::vector<double>& total() { return total_; }

  /// Adds the next piece; the checkpoint is written where it is due, and holds the sum when it is
  /// whole.
  /// @throws StorageError if the file cannot be written.
  void add(const std::vector<double>& piece);

 private:
  Checkpoint& checkpoint_;
  std::string key_;
  std::int64_t n_pieces_;
  std::int64_t finished_ = 0;
  std::vector<double> total_;
};

}  // namespace quasi::thermal
