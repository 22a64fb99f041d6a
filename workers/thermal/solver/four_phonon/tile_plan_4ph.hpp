#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

/// Least number of total momenta in a tile; the last tile may have fewer. The number depends on the
/// problem alone, so that sums have the same bits on any number of devices.
inline constexpr std::int32_t kTotalsPerTile4ph = 16;

/// Positions in Problem4ph::totals at which tiles begin, followed by the end. A tile holds whole
/// stars, which share tables.
std::vector<std::int32_t> tile_bounds_4ph(const Problem4ph& problem);

/// Partition and order of the work of a four-phonon problem. Devices, ranks, progress and
/// checkpoints share it.
///
/// A tile is a run of total momenta in the order of Problem4ph::totals. A *place* is a position in
/// the order of work, in which tiles stand by falling predicted work: a free device takes the
/// dearest tile left, and the last tiles are small. Sums are added in rising place, whichever
/// device computed them. That order, and so every bit, depends on the problem alone.
struct TilePlan4ph {
  std::vector<std::int32_t> bound;  ///< [n_tiles + 1] of tile_bounds_4ph
  std::vector<std::int32_t> tile;   ///< [n_tiles] the tile at each place
  std::vector<double>
      work_before;  ///< [n_tiles + 1] predicted work of the places before, complex multiply-adds
  std::vector<double> processes;  ///< [n_tiles] predicted matrix elements of the tile at each place

  std::int64_t size() const { return static_cast<std::int64_t>(tile.size()); }
  /// Total momenta [first, last) of a place, as ScatteringKernels4ph takes them.
  std::int32_t first_total(std::int64_t place) const {
    return bound[static_cast<std::size_t>(tile[static_cast<std::size_t>(place)])];
  }
  std::int32_t last_total(std::int64_t place) const {
    return bound[static_cast<std::size_t>(tile[static_cast<std::size_t>(place)]) + 1];
  }
  /// Predicted work of a place.
  double work(std::int64_t place) const {
    return work_before[static_cast<std::size_t>(place) + 1] -
           work_before[static_cast<std::size_t>(place)];
  }
  /// Share of all work in the places before `place`, in whole units of kProgressUnits, as progress
  /// reports it.
  static constexpr std::int64_t kProgressUnits = 1000000;
  std::int64_t progress(std::int64_t place) const;
};

/// Predicts the work of every tile from the densities of pair energies and orders the tiles. The
/// densities are sampled over mesh and modes with fixed strides, so that every run gives the same
/// bits. The prediction is good to some per cent and takes a fraction of a second.
TilePlan4ph plan_tiles_4ph(const Problem4ph& problem);

}  // namespace quasi::thermal
