#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

/// Total momenta a tile has at least, but for the last: a property of the problem alone, so that
/// sums have the same bits on any number of devices.
inline constexpr std::int32_t kTotalsPerTile4ph = 16;

/// Places of Problem4ph::totals at which tiles begin, and the end: whole stars, which share tables.
std::vector<std::int32_t> tile_bounds_4ph(const Problem4ph& problem);

/// How the work of a four-phonon problem is cut and ordered: the one partition that devices of a
/// host, ranks, progress and checkpoints share.
///
/// A tile is a run of total momenta in the order of Problem4ph::totals; a *place* of this plan is a
/// position in the order of work, where tiles stand by falling predicted work, so that whoever is
/// free takes the dearest tile left and the last ones are small. Sums are added in rising place,
/// whoever computed them: that order, and so every bit, is the problem's alone.
struct TilePlan4ph {
  std::vector<std::int32_t> bound;  ///< [n_tiles + 1] of tile_bounds_4ph
  std::vector<std::int32_t> tile;   ///< [n_tiles] the tile at each place
  std::vector<double>
      work_before;  ///< [n_tiles + 1] predicted work of the places before, complex multiply-adds
  std::vector<double> processes;  ///< [n_tiles] predicted matrix elements of the tile at each place

  std::int64_t size() const { return static_cast<std::int64_t>(tile.size()); }
  /// Total momenta [first, last) of a place: what ScatteringKernels4ph takes.
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
  /// Share of all work in the places before `place`, in whole units of kProgressUnits: what is
  /// reported as progress.
  static constexpr std::int64_t kProgressUnits = 1000000;
  std::int64_t progress(std::int64_t place) const;
};

/// Predicts the work of every tile from the densities of pair energies, sampled over mesh and modes
/// with fixed strides (some per cent; a fraction of a second), and orders the tiles. The same bits
/// on every run.
TilePlan4ph plan_tiles_4ph(const Problem4ph& problem);

}  // namespace quasi::thermal
