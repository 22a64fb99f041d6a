#pragma once

#include "workers/mosfet/kernels/transport/transport_shape.cuh"

namespace quasi::mosfet::cuda {

/// Position (r, m) of a thread in the tile of its block, and the factors that depend on it alone.
///
/// Row r = 0 closes the lower w interface of the tile. Threads beyond the last row repeat it and
/// store nothing, so that no branch surrounds the fluxes. A number of angles that the compiler
/// knows (kAngles > 0, with the tile that fills a block) simplifies the index arithmetic.
/// See docs/theory/mosfet.md 5.3 for the equations.
template <bool kFull, int kAngles>
struct TileThread {
  int n, tile;                ///< angles; rows of the tile
  int first, state, valley;   ///< lowest row of the tile; state of the block and its valley pair
  bool in_block, row_exists;  ///< within (tile+1)·n; row is in the grid and is not the closing row
  int r, m, l;                ///< row of threads, angle, node of w
  bool forward;               ///< cos φ > 0
  double sin_m, weight_m;     ///< sin φ; quadrature weight, zero in rows of other blocks
  double x_factor;            ///< v cos φ
  double w_factor;            ///< −cos φ; zero above the top node, which is closed
  double turning_l;           ///< 1/(√(2 m_x w(1+αw)) Δφ)
  double inflow_source, inflow_drain;  ///< Φ beyond the contacts
  int index_lm;                        ///< (l, m) in a plane of one column
  /// Rows first−3, first−2 and first+tile … first+tile+2 are fetched by thread rows 0 … 4, row
  /// first−1 by its own thread.
  bool fetches, edge;
  double own_factor, halo_factor;  ///< v of the own row and of the fetched row
  int halo_at, edge_at;            ///< positions of the fetched nodes in a plane
  int ghost, other_ghost;          ///< offsets of the ghosts that repeat this angle; 0: none
  int turn;                        ///< offset of the φ flux at m − ½

  __device__ __forceinline__ TileThread(const DeviceProblem& p, const DevicePoint& q,
                                        const TransportShape& shape) {
    n = kAngles > 0 ? kAngles : p.angles;
    tile = kAngles > 0 ? full_tile(kFull, kAngles) : shape.tile;
    state = blockIdx.y;
    first = blockIdx.x * tile;
    valley = state / p.subbands;
    const int t = threadIdx.x;
    in_block = t < (tile + 1) * n;
    r = in_block ? t / n : tile;
    m = t % n;
    l = first - 1 + r;
    row_exists = r > 0 && l < p.nw;
    index_lm = row_exists ? l * n + m : 0;
    find_factors(p, q);
    find_halo(p);
    find_ghosts();
  }

  __device__ __forceinline__ bool own() const { return in_block && row_exists; }

 private:
  __device__ __forceinline__ void find_factors(const DeviceProblem& p, const DevicePoint& q) {
    const double cos_m = p.cos_phi[m];
    const double speed_l = row_exists ? p.speed[valley * p.nw + l] : 0.0;
    sin_m = p.sin_phi[m];
    weight_m = own() ? p.weight[m] : 0.0;
    turning_l = row_exists ? p.turning[valley * p.nw + l] * (1.0 / p.dphi) : 0.0;
    x_factor = speed_l * cos_m;
    w_factor = l < p.nw - 1 ? -cos_m : 0.0;
    forward = cos_m > 0.0;
    inflow_source = row_exists ? q.inflow_scale[0] * q.inflow_source[state * p.nw + l] : 0.0;
    inflow_drain = row_exists ? q.inflow_scale[1] * q.inflow_drain[state * p.nw + l] : 0.0;
    own_factor = speed_l;
  }

  __device__ __forceinline__ void find_halo(const DeviceProblem& p) {
    fetches = in_block && r < 5;
    edge = in_block && r == 0;
    const int halo_l = r < 2 ? first - 3 + r : first + tile + r - 2;
    halo_factor = fetches ? speed_of(p, halo_l) : 0.0;
    if (edge) own_factor = speed_of(p, l);
    halo_at = fetches ? index_in_plane(p, halo_l) : 0;
    edge_at = edge ? index_in_plane(p, l) : 0;
  }

  // Below w = 0 a row continues at the mirrored angle; above the top all values are zero.
  __device__ __forceinline__ int index_in_plane(const DeviceProblem& p, int row) const {
    return row < 0 ? (-1 - row) * n + p.mirror[m] : row < p.nw ? row * n + m : 0;
  }
  __device__ __forceinline__ double speed_of(const DeviceProblem& p, int row) const {
    const double* speed = p.speed + valley * p.nw;
    return row < 0 ? speed[-1 - row] : row < p.nw ? speed[row] : 0.0;
  }

  // Finds the ghost that repeats this angle: of −φ, of 2π−φ, or of the period. With fewer than nine
  // angles, one angle may be repeated at both ends.
  __device__ __forceinline__ void find_ghosts() {
    ghost = kFull ? (m >= n - 3 ? -n
                     : m <= 2   ? n
                                : 0)
                  : (m >= 1 && m <= 3           ? -2 * m
                     : m >= n - 4 && m <= n - 2 ? 2 * (n - 1 - m)
                                                : 0);
    other_ghost =
        kAngles == 0 && !kFull && m <= 3 && m >= n - 4 && m <= n - 2 ? 2 * (n - 1 - m) : 0;
    turn = kFull && m == 0 ? n - 1 : -1;
  }
};

}  // namespace quasi::mosfet::cuda
