#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/gw/solver/device_team.hpp"

namespace quasi::gw {

/// A sum that is cut into parts, whose cut does not depend on the number of devices. The caller
/// adds the results in order. One device and many, in one run or interrupted, therefore give the
/// same bits.
struct PartedSum {
  std::string name;   ///< pieces are kept as name/0, name/1, …
  std::string phase;  ///< phase that is reported, with the parts finished so far
  std::int64_t parts = 0;
  /// Computes the result of one part. Its reports under the given progress count as those of the
  /// whole.
  std::function<std::vector<double>(std::int64_t part, GwKernels& kernels, Progress& progress)>
      make;
  /// If given, it is called on rank 0 after each part, one call at a time, with the results so far.
  std::function<void(const std::vector<Piece>& results, const std::vector<char>& finished)> running;
};

/// Computes all parts and returns them on every rank. Collective. Parts are small. Those of other
/// ranks go to rank 0 as soon as they are finished, and into its checkpoint.
std::vector<Piece> run_parts(const PartedSum& sum, DeviceTeam& team, Checkpoint& checkpoint,
                             Progress& progress);

}  // namespace quasi::gw
