#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

/// Where checkpoints go, and how often.
struct CheckpointRule {
  std::filesystem::path directory = {};  ///< empty: none
  double interval_s = 30.0;              ///< between two, unless the daemon asks; 0: after every tile
};

/// The running sums after a number of finished tiles, in one file that is replaced atomically. Sums
/// are added tile by tile in a fixed order, so what follows from a checkpoint has the same bits as an
/// undisturbed run.
class Checkpoint4ph {
 public:
  /// Reads the newest checkpoint of this very problem, if the directory holds one. A file of another
  /// problem (another digest of all inputs) or a damaged one is left alone and reported as absent.
  Checkpoint4ph(const CheckpointRule& rule, const Problem4ph& problem,
                std::int64_t n_values);

  std::int64_t finished() const { return finished_; }
  const std::vector<double>& total() const { return total_; }

  /// Called after every tile; writes when the interval has passed since the last, or when the daemon asks.
  /// @throws StorageError if the file cannot be written.
  void finished_tile(std::int64_t finished, const std::vector<double>& total, Progress& progress);

 private:
  std::filesystem::path file_;
  double interval_s_;
  std::uint64_t digest_ = 0;
  std::int64_t n_values_ = 0;
  std::int64_t finished_ = 0;
  std::vector<double> total_;
  double last_write_s_ = 0.0;
};

}  // namespace quasi::thermal
