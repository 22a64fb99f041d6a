#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Options of a sweep in addition to its deck.
struct SweepOptions {
  std::vector<Device> devices;
  std::filesystem::path checkpoint_directory;  ///< empty: no checkpoints
  std::filesystem::path output_directory;  ///< directory of snapshots of the pdf; empty: none are
                                           ///< written
  /// Processes that share the sweep. Rank 0 alone writes files and calls `on_finished`.
  Ranks* ranks = &one_rank();
  /// Memory of one device for the points that advance together, in bytes; 0: no limit of the job.
  std::int64_t memory_budget_bytes = 0;
  int lanes = 0;  ///< points that advance together on a device; 0: 1 on a CPU, 4 to 12 on a GPU
  /// Receives the points that have finished since the last call, by their position in the deck. A
  /// lock is held during the call. The first call of a resumed sweep has all earlier points.
  std::function<void(const std::map<int, PointResult>& points)> on_finished;
  /// Receives the last state of a finished point and its Φ*; may be empty.
  std::function<void(int point, const PointState&, double pdf_scale)> on_state;
};

/// Returns the bytes that one point takes on a device: the state, the stages of a step, the copy
/// for a failed batch, and on a GPU the frozen matrix and its inverse. @param pdf_size  cells of
/// phase space @param nodes     nodes of the (x, z) mesh
inline double bytes_of_point(double pdf_size, double nodes, Backend backend) {
  return backend == Backend::kCpu ? 5.0 * 8.0 * pdf_size
                                  : 3.0 * 8.0 * pdf_size + 12.0 * nodes * nodes;
}

/// Begin here: runs every bias point of a transient or steady deck (docs/theory/mosfet.md 10).
///
/// Steady points of one V_GS form a chain along V_DS. Each starts from its predecessor's pdf, with
/// V shifted by the solution of the linear Poisson problem of the bias change. Chains are
/// independent. Those of the beam scheme have at most six points, each of which starts from the
/// quasi-Fermi levels of the last two. Lanes of a device advance
/// together, devices share a queue, and ranks have ranges of chains in proportion to their devices.
/// The numbers of a point depend on its chain alone. A checkpoint is written when a point ends and
/// every checkpoint_interval_s. The run resumes from the newest checkpoint in the directory with
/// the same bits.
///
/// Collective: every rank calls it.
/// @return one result per point of the deck, in its order, on every rank.
/// @throws NotConverged, InvalidInput (w_max too low), Cancelled, StorageError, PeerFailed.
std::vector<PointResult> run_sweep(const Deck& deck, const SweepOptions& options,
                                   Progress& progress);

}  // namespace quasi::mosfet
