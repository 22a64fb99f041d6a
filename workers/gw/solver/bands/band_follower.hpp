#pragma once

#include <vector>

#include "workers/gw/solver/bands/state_matching.hpp"

namespace quasi::gw {

/// Follows states along a path. Each row of a window of bands holds one state, which it recognises
/// at the next point by its overlaps (docs/theory/gw.md 10).
class BandFollower {
 public:
  /// @param groups  of bands of the window, which exchange no states
  explicit BandFollower(std::vector<BandGroup> groups) : groups_(std::move(groups)) {}

  /// Moves to the next point and returns the band of the window in each row, [n_bands].
  /// @param window_begin  first band of the window in `now`
  std::vector<std::size_t> follow(const DenseStates& now, std::size_t window_begin,
                                  std::size_t n_bands);

 private:
  std::vector<BandGroup> groups_;
  std::vector<IVec3> g_;  ///< plane waves of the rows at the point before; empty at the first point
  std::vector<Cplx> rows_;  ///< [n_bands][g_]
};

}  // namespace quasi::gw
