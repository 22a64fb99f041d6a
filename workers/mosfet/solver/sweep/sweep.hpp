#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// How a sweep runs beside what its deck says.
struct SweepOptions {
  std::vector<Device> devices;
  std::filesystem::path checkpoint_directory;  ///< empty: none
  std::filesystem::path output_directory;      ///< of snapshots of the pdf; empty: none are written
  /// The processes that share the sweep. Rank 0 alone writes files and calls `on_finished`.
  Ranks* ranks = &one_rank();
  /// Bytes of one device that the points at once may take; 0: no limit of the job's.
  std::int64_t memory_budget_bytes = 0;
  int lanes = 0;  ///< points at once on a device; 0: 1 on a CPU, 4 to 12 on a GPU
  std::function<void(int point, const PointResult&)>
      on_finished;  ///< under a lock; on a resume also for what is done
  /// The last state of a finished point and its Φ*; may be empty.
  std::function<void(int point, const PointState&, double pdf_scale)> on_state;
};

/// Bytes that one point at a time takes on a device: the state, the stages of a step, what a failed
/// batch goes back to, and on a GPU the frozen matrix and its inverse.
/// @param pdf_size  cells of phase space
/// @param nodes     nodes of the (x, z) mesh
inline double bytes_of_point(double pdf_size, double nodes, Backend backend) {
  return backend == Backend::kCpu ? 5.0 * 8.0 * pdf_size
                                  : 3.0 * 8.0 * pdf_size + 12.0 * nodes * nodes;
}

/// Runs every bias point of a transient or steady deck.
///
/// Steady points of one V_GS form a chain along V_DS: each starts from its predecessor's pdf, with
/// V shifted by the solution of the linear Poisson problem of the bias change. Chains are
/// independent; lanes of a device advance together, devices share a queue, and ranks have ranges of
/// chains in proportion to their devices. A point's numbers depend
/// on its chain alone, not on what ran beside it. A checkpoint is written when a point ends and
/// every checkpoint_interval_s; the newest one in the directory is resumed from, with the same
/// bits.
///
/// Collective: every rank calls it.
/// @return one result per point of the deck, in its order, on every rank.
/// @throws NotConverged, InvalidInput (w_max too low), Cancelled, StorageError, PeerFailed.
std::vector<PointResult> run_sweep(const Deck& deck, const SweepOptions& options,
                                   Progress& progress);

}  // namespace quasi::mosfet
