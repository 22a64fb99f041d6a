#pragma once

#include "workers/mosfet/kernels/device_point.cuh"

namespace quasi::mosfet::cuda {

constexpr int kMaxColumns = 64;  ///< columns of a segment along x

/// Shape of the fused transport kernel. A block owns `tile` rows of w of one state and all angles,
/// and runs along a segment of x. In thread (r, m), r = 0 only closes the lower w interface of the
/// tile.
struct TransportShape {
  int tile = 0;      ///< rows of w in a block
  int threads = 0;   ///< (tile+1)·angles, rounded up to whole warps
  int tiles = 0;     ///< number of tiles along w
  int segments = 0;  ///< number of segments along x
  int columns = 0;   ///< columns of a segment
  QUASI_HD int warps() const { return threads / 32; }
  std::size_t shared_bytes(const TransportProblem& problem) const;
};

/// Layout of the values that one column leaves in shared memory for its neighbours. Two frames
/// alternate.
struct ColumnFrame {
  int plane;   ///< vΦ of rows first−3 … first+tile+2, [tile+6][n]
  int padded;  ///< sin φ Φ, or one half of the split flux, with three ghosts at either end,
               ///< [tile+1][n+6]
  int rows;    ///< [tile+1][n], four times: w flux, φ flux, weight·Φ of the result, weight·F^x
  int halves;  ///< number of parts of the φ flux: 2 if it is split
  QUASI_HD ColumnFrame(int tile, int n, bool split)
      : plane((tile + 6) * n),
        padded((tile + 1) * (n + 6)),
        rows((tile + 1) * n),
        halves(split ? 2 : 1) {}
  QUASI_HD int angles_at() const { return plane; }
  QUASI_HD int fluxes_at() const { return plane + halves * padded; }
  QUASI_HD int size() const { return plane + halves * padded + 4 * rows; }
};

inline std::size_t TransportShape::shared_bytes(const TransportProblem& problem) const {
  const ColumnFrame frame(tile, problem.angles, problem.phi_flux == PhiFlux::kSplit);
  return sizeof(double) * (2 * static_cast<std::size_t>(frame.size()) + kMaxColumns);
}

/// Threads of a block. On the half range two blocks share a multiprocessor, so that one computes
/// while the other waits at a barrier. Rows of the full circle are too long for two blocks.
constexpr int kHalfThreads = 256, kHalfBlocks = 2, kFullThreads = 512;

/// Five halo rows are fetched by five rows of threads.
constexpr int kLeastTile = 5;

/// Returns the finest nphi (a multiple of four) for which kLeastTile rows and the closing row fit a
/// block.
QUASI_HD constexpr int largest_nphi(AngleRange range) {
  const int angles = (range == AngleRange::kFull ? kFullThreads : kHalfThreads) / (kLeastTile + 1);
  return (range == AngleRange::kFull ? angles : 2 * (angles - 1)) / 4 * 4;
}

/// Returns the rows of w that fill a block.
QUASI_HD constexpr int full_tile(bool full, int angles) {
  return (full ? kFullThreads : kHalfThreads) / angles - 1;
}

/// Chooses tile, segments and threads for a problem and a number of multiprocessors.
inline TransportShape transport_shape(const TransportProblem& problem, int multiprocessors) {
  TransportShape shape;
  const bool full = problem.range == AngleRange::kFull;
  shape.tile = full_tile(full, problem.angles);
  if (shape.tile > problem.nw) shape.tile = problem.nw;
  if (shape.tile < kLeastTile) shape.tile = kLeastTile;
  shape.threads = ((shape.tile + 1) * problem.angles + 31) / 32 * 32;
  shape.tiles = (problem.nw + shape.tile - 1) / shape.tile;
  // There are enough segments to fill the last wave of blocks nearly; each segment costs one more x
  // flux.
  const int nx = problem.structure.nx, slots = multiprocessors * (full ? 1 : kHalfBlocks);
  double best = 1e300;
  for (int segments = 1; segments == 1 || segments <= nx / 6; ++segments) {
    const int columns = (nx + segments - 1) / segments;
    if (columns > kMaxColumns) continue;
    const int blocks = shape.tiles * problem.n_states() * ((nx + columns - 1) / columns);
    const int waves = (blocks + slots - 1) / slots;
    const double cost = waves * (columns + 0.6);
    if (cost < best) {
      best = cost;
      shape.columns = columns;
      shape.segments = (nx + columns - 1) / columns;
    }
  }
  return shape;
}

/// Buffers that one Runge–Kutta stage reads and writes, and its coefficients (docs/theory/mosfet.md
/// 8).
struct StageBuffers {
  const double *pdf_n, *pdf_s;
  double* out;
  double share_n, share_s, flux_weight;
  bool first;
};

}  // namespace quasi::mosfet::cuda
