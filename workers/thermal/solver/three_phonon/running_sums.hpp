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
  double interval_s = 30.0;  ///< between checkpoints that nobody asked for; 0: after every piece
};

/// Opens the checkpoint of a thermal job. It holds running sums by name, each with the digest of
/// its terms.
Checkpoint open_checkpoint(const CheckpointRule& rule, Progress& progress);

/// One sum over numbered pieces that are added in their order, so that a run which resumes from a
/// checkpoint has the bits of an undisturbed run.
class RunningSums {
 public:
  /// Resumes the sum of this name if the checkpoint holds one with this digest and number of
  /// values; otherwise starts at zero.
  /// @param digest  of everything the sum depends on
  RunningSums(Checkpoint& checkpoint, const std::string& name, std::uint64_t digest,
              std::size_t n_values, std::int64_t n_pieces);

  std::int64_t finished() const { return finished_; }
  /// [n_values] over the finished pieces.
  std::vector<double>& total() { return total_; }

  /// Adds the next piece and writes the checkpoint when it is due. A complete sum stays in the
  /// checkpoint.
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
