#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/gw/solver/device_team.hpp"

namespace quasi::gw {

/// A sum cut into parts without regard to how many devices there are. Whoever asked adds the
/// results in order, so that one device and many, in one go or interrupted, give the same bits.
struct PartedSum {
  std::string name;   ///< pieces are kept as name/0, name/1, …
  std::string phase;  ///< what is reported, with the parts finished so far
  std::int64_t parts = 0;
  /// The result of one part. Its reports under the given progress count as those of the whole.
  std::function<std::vector<double>(std::int64_t part, GwKernels& kernels, Progress& progress)>
      make;
  /// If given, called on rank 0 after each part, one call at a time, with what is finished so far.
  std::function<void(const std::vector<Piece>& results, const std::vector<char>& finished)> running;
};

/// All parts, on every rank. Together. Parts are small: those of other ranks go to rank 0 as they
/// are finished, and into its checkpoint.
std::vector<Piece> run_parts(const PartedSum& sum, DeviceTeam& team, Checkpoint& checkpoint,
                             Progress& progress);

}  // namespace quasi::gw
