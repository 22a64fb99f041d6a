#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/transport/fast_quotient.cuh"
#include "workers/mosfet/physics/gradient.hpp"
#include "workers/mosfet/physics/weno5.hpp"

namespace quasi::mosfet::cuda {

constexpr int kMaxColumns = 64;  ///< of a segment along x

/// Shape of the fused transport kernel: a block owns `tile` rows of w of one state and all angles,
/// and marches along a segment of x. Thread (r, m): r = 0 only closes the lower w interface of the
/// tile.
struct TransportShape {
  int tile = 0;      ///< rows of w of a block
  int threads = 0;   ///< (tile+1)·angles, rounded up to whole warps
  int tiles = 0;     ///< along w
  int segments = 0;  ///< along x
  int columns = 0;   ///< of a segment
  QUASI_HD int warps() const { return threads / 32; }
  std::size_t shared_bytes(const TransportProblem& problem) const;
};

/// What one column leaves in shared memory for its neighbours; two of them take turns.
struct ColumnFrame {
  int plane;   ///< vΦ of rows first−3 … first+tile+2, [tile+6][n]
  int padded;  ///< sin φ Φ, or one half of the split flux, with three ghosts at either end,
               ///< [tile+1][n+6]
  int rows;    ///< [tile+1][n], four times: w flux, φ flux, weight·Φ of the result, weight·F^x
  int halves;  ///< of the φ flux
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

/// Threads of a block: two blocks share a multiprocessor on the half range, so that one computes
/// while the other waits at a barrier; rows of the full circle are too long for that.
constexpr int kHalfThreads = 256, kHalfBlocks = 2, kFullThreads = 512;

/// Five halo rows are fetched by five rows of threads.
constexpr int kLeastTile = 5;

/// The finest nphi (a multiple of four) of which kLeastTile rows and the one that closes them fit a
/// block.
QUASI_HD constexpr int largest_nphi(AngleRange range) {
  const int angles = (range == AngleRange::kFull ? kFullThreads : kHalfThreads) / (kLeastTile + 1);
  return (range == AngleRange::kFull ? angles : 2 * (angles - 1)) / 4 * 4;
}

/// Rows of w that fill a block.
QUASI_HD constexpr int full_tile(bool full, int angles) {
  return (full ? kFullThreads : kHalfThreads) / angles - 1;
}

inline TransportShape transport_shape(const TransportProblem& problem, int multiprocessors) {
  TransportShape shape;
  const bool full = problem.range == AngleRange::kFull;
  shape.tile = full_tile(full, problem.angles);
  if (shape.tile > problem.nw) shape.tile = problem.nw;
  if (shape.tile < kLeastTile) shape.tile = kLeastTile;
  shape.threads = ((shape.tile + 1) * problem.angles + 31) / 32 * 32;
  shape.tiles = (problem.nw + shape.tile - 1) / shape.tile;
  // Enough segments that the last wave of blocks is nearly full; each costs one more x flux.
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

/// Where one Runge–Kutta stage reads and writes.
struct StageBuffers {
  const double *pdf_n, *pdf_s;
  double* out;
  double share_n, share_s, flux_weight;
  bool first;
};

/// One Runge–Kutta stage of the transport of one point, fused: fluxes in x, w and φ, gain and loss,
/// the update, Φ̃ of the result, and the block's share of the current at every half node.
///
/// Each Φ is read from memory once by its own thread (three planes ahead in x, kept in registers),
/// the x flux stays in a register for the next plane, and the w and φ fluxes are exchanged through
/// shared memory. Sums run in a fixed tree: same bits every time. A number of angles known to the
/// compiler (kAngles > 0, with the tile that fills a block) folds the index arithmetic, which
/// otherwise issues as many instructions as the fluxes.
template <bool kSplit, bool kFull, int kAngles>
__global__ void __launch_bounds__(kFull ? kFullThreads : kHalfThreads, kFull ? 1 : kHalfBlocks)
    transport_kernel(const __grid_constant__ DeviceProblem p, const __grid_constant__ DevicePoint q,
                     const __grid_constant__ StageBuffers stage,
                     const __grid_constant__ TransportShape shape) {
  if (!q.clock->active) return;
  extern __shared__ double shared[];
  const int n = kAngles > 0 ? kAngles : p.angles;
  const int tile = kAngles > 0 ? full_tile(kFull, kAngles) : shape.tile;
  const ColumnFrame frame(tile, n, kSplit);
  const int size = frame.size(), rows = frame.rows;
  double* slope_of = shared + 2 * size;  // ε' of the segment's columns [kMaxColumns]

  const int state = blockIdx.y, first = blockIdx.x * tile;
  const int begin = blockIdx.z * shape.columns;
  const int end = min(p.nx, begin + shape.columns);
  const int valley = state / p.subbands;
  const int t = threadIdx.x, lane = t & 31, warp = t / 32;
  // Threads past the last row repeat it and store nothing: no branch around the fluxes.
  const bool in_block = t < rows;
  const int r = in_block ? t / n : tile, m = t % n;
  const int l = first - 1 + r;
  const bool row_exists = r > 0 && l < p.nw;
  const bool own = in_block && row_exists;
  const int plane_size = p.nw * n;
  const double* base_s = stage.pdf_s + static_cast<long long>(state) * p.nx * plane_size;
  const double* speed = p.speed + valley * p.nw;
  const double per_dx = 1.0 / p.dx, per_dw = 1.0 / p.dw, per_dphi = 1.0 / p.dphi;
  const double epsilon = p.weno_epsilon;
  constexpr FastQuotient quotient{};

  {
    const double* row =
        q.energy +
        static_cast<long long>(p.family_of[valley] * p.subbands + state % p.subbands) * p.nx;
    const double* lead = q.lead + (row - q.energy);
    for (int k = t; k < end - begin; k += blockDim.x)
      slope_of[k] =
          gradient_at(row, begin + k, p.nx, p.dx) + gradient_at(lead, begin + k, p.nx, p.dx);
  }

  const double cos_m = p.cos_phi[m], sin_m = p.sin_phi[m];
  const double weight_m = own ? p.weight[m] : 0.0;
  const double speed_l = row_exists ? speed[l] : 0.0;
  const double turning_l = row_exists ? p.turning[valley * p.nw + l] * per_dphi : 0.0;
  const double x_factor = speed_l * cos_m;              // Zero in the direction across.
  const double w_factor = l < p.nw - 1 ? -cos_m : 0.0;  // The top is closed.
  const double dt_share = stage.share_s * q.clock->dt;
  const bool forward = cos_m > 0.0;
  const int at_lm = row_exists ? l * n + m : 0;

  // Φ at plane i, with the contacts' distributions beyond the ends.
  const double inflow_source =
      row_exists ? q.inflow_scale[0] * q.inflow_source[state * p.nw + l] : 0.0;
  const double inflow_drain =
      row_exists ? q.inflow_scale[1] * q.inflow_drain[state * p.nw + l] : 0.0;
  const auto value = [&](int i) {
    if (i < 0 && forward) return inflow_source;
    if (i >= p.nx && !forward) return inflow_drain;
    return base_s[static_cast<long long>(min(max(i, 0), p.nx - 1)) * plane_size + at_lm];
  };
  // vΦ of a row that is not the block's own: the mirrored angle below w = 0, nothing above the top.
  // Rows first−3, first−2 and first+tile … first+tile+2 are fetched by thread rows 0 … 4, row
  // first−1 by its own thread.
  const auto halo_offset = [&](int row, int angle) {
    return row < 0 ? (-1 - row) * n + p.mirror[angle] : row < p.nw ? row * n + angle : 0;
  };
  const auto halo_speed = [&](int row) {
    return row < 0 ? speed[-1 - row] : row < p.nw ? speed[row] : 0.0;
  };
  const bool fetches = in_block && r < 5;
  const int halo_l = r < 2 ? first - 3 + r : first + tile + r - 2;
  const double halo_factor = fetches ? halo_speed(halo_l) : 0.0;
  const bool edge = in_block && r == 0;
  const double own_factor = edge ? halo_speed(l) : speed_l;

  // This thread's places in the first frame.
  double* const own_speed = shared + (r + 2) * n + m;
  double* const halo_place = shared + (r < 2 ? r : tile + 1 + r) * n + m;
  double* const own_angle = shared + frame.angles_at() + r * (n + 6) + 3 + m;
  double* const w_flux = shared + frame.fluxes_at() + r * n + m;
  double* const phi_flux = w_flux + rows;
  double* const result = phi_flux + rows;
  double* const moved = result + rows;
  // The ghost that repeats this angle: of −φ, of 2π−φ, or the period's.
  const int ghost = kFull ? (m >= n - 3 ? -n
                             : m <= 2   ? n
                                        : 0)
                          : (m >= 1 && m <= 3           ? -2 * m
                             : m >= n - 4 && m <= n - 2 ? 2 * (n - 1 - m)
                                                        : 0);
  // With fewer than nine angles one may be repeated at both ends.
  const int other_ghost =
      kAngles == 0 && !kFull && m <= 3 && m >= n - 4 && m <= n - 2 ? 2 * (n - 1 - m) : 0;
  const int turn = kFull && m == 0 ? n - 1 : -1;  // The φ flux at m−½, from here.

  // Planes i−3 … i+3, of which the x flux needs all but the last.
  constexpr int kReach = 4;
  double v0 = value(begin - 3), v1 = value(begin - 2), v2 = value(begin - 1), v3 = value(begin),
         v4 = value(begin + 1), v5 = value(begin + 2), ahead = value(begin + kReach - 1);
  const double* next = base_s + static_cast<long long>(begin + kReach) * plane_size + at_lm;
  const auto x_flux = [&]() {
    return x_factor * weno5(forward ? v0 : v5, forward ? v1 : v4, forward ? v2 : v3,
                            forward ? v3 : v2, forward ? v4 : v1, epsilon, quotient);
  };
  double* partial =
      q.current_partial + (static_cast<long long>(state) * shape.tiles + blockIdx.x) * (p.nx + 1);
  const bool last_warp = warp == shape.warps() - 1;
  // The current through a half node, by the last warp; Φ̃ of a finished column, eight lanes a row.
  const auto sum_current = [&](int half_node, int at) {
    if (!last_warp) return;
    const double* from = shared + at + frame.fluxes_at() + 3 * rows;
    double sum = 0.0;
    for (int k = lane; k < rows; k += 32) sum += from[k];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
      partial[half_node] = (stage.first ? 0.0 : partial[half_node]) + stage.flux_weight * sum;
  };
  const int sum_row = 1 + warp * 4 + lane / 8;
  const double* const sum_from = shared + frame.fluxes_at() + 2 * rows;
  double* sum_to = q.angle_sum + (static_cast<long long>(state) * p.nx + begin) * p.nw + first - 1;
  const auto sum_rows = [&](int at) {
    for (int row = sum_row; row - lane / 8 <= tile; row += 4 * shape.warps()) {
      const double* from = sum_from + at + min(row, tile) * n;
      double sum = 0.0;
      for (int a = lane & 7; a < n; a += 8) sum += from[a];
      for (int step = 4; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
      if ((lane & 7) == 0 && row <= tile && first - 1 + row < p.nw) sum_to[row] = sum;
      if constexpr (kAngles >= 8) break;  // A row has a warp's quarter: one round sums the tile.
    }
    sum_to += p.nw;
  };
  // A plane's vΦ and sin φ Φ (or its split halves) for the neighbours.
  const auto publish = [&](int at, double centre, double halo, double lower_edge, double slope) {
    own_speed[at] = own_factor * (edge ? lower_edge : centre);
    if (fetches) halo_place[at] = halo_factor * halo;
    double* plus = own_angle + at;
    if constexpr (!kSplit) {
      const double g = sin_m * centre;
      plus[0] = g;
      if (ghost != 0) plus[ghost] = -g;
      if (kAngles == 0 && other_ghost != 0) plus[other_ghost] = -g;
    } else {
      const double tilt = slope < 0.0 ? -sin_m : sin_m, half = 0.5 * centre;
      const double u = (tilt + 1.0) * half, d = (tilt - 1.0) * half;
      double* minus = plus + frame.padded;
      plus[0] = u;
      minus[0] = d;
      if (ghost != 0) {
        plus[ghost] = kFull ? u : -d;
        minus[ghost] = kFull ? d : -u;
      }
      if (kAngles == 0 && other_ghost != 0) {
        plus[other_ghost] = -d;
        minus[other_ghost] = -u;
      }
    }
  };

  // Software pipeline, one barrier a column: while column i's fluxes are formed, column i−1 is
  // finished with the fluxes that the barrier before made visible, column i−2 is summed, and plane
  // i+1 is published.
  __syncthreads();  // ε' is there.
  const double* halo_from =
      base_s + static_cast<long long>(begin) * plane_size + (fetches ? halo_offset(halo_l, m) : 0);
  const double* edge_from =
      base_s + static_cast<long long>(begin) * plane_size + (edge ? halo_offset(l, m) : 0);
  double slope = slope_of[0];
  publish(0, v3, fetches ? *halo_from : 0.0, edge ? *edge_from : 0.0, slope);
  double flux_behind =
      x_flux();  // At the half node before `begin`; only the first segment counts it.
  if (begin == 0 && in_block) moved[size] = weight_m * flux_behind;
  double flux_ahead = 0.0, along_w = 0.0, along_phi = 0.0, halo_ahead = 0.0, edge_ahead = 0.0;
  halo_from += plane_size;
  edge_from += plane_size;
  if (begin + 1 < end) {
    if (fetches) halo_ahead = *halo_from;
    if (edge) edge_ahead = *edge_from;
  }
  long long row = (static_cast<long long>(state) * p.nx + begin - 1) * p.nw + (row_exists ? l : 0);
  long long cell = row * n + m;
  __syncthreads();

  const auto column = [&](int i, int here) {
    const int there = size - here;
    const bool finishes = own && i > begin;
    double old = 0.0, gain = 0.0, loss = 0.0;
    if (finishes) {
      if (stage.share_n != 0.0) old = stage.pdf_n[cell];
      if (p.scatters) {
        gain = q.gain[row];
        loss = q.loss[row];
      }
    }
    const double before_w = along_w, before_phi = along_phi, flux_before = flux_behind,
                 flux_after = flux_ahead;
    const double centre = v2;  // Of column i−1.
    const double slope_before = slope_of[max(i - 1 - begin, 0)];
    if (i < end) {
      v0 = v1;
      v1 = v2;
      v2 = v3;
      v3 = v4;
      v4 = v5;
      v5 = ahead;
      if (i + kReach < p.nx) {
        ahead = *next;
        next += plane_size;
      } else if (!forward) {
        ahead = inflow_drain;  // Those that leave keep the last plane's.
      }
      const double slope_next = i + 1 < end ? slope_of[i + 1 - begin] : 0.0;
      if (i + 1 < end) {
        publish(there, v3, halo_ahead, edge_ahead, slope_next);
        if (i + 2 < end) {
          halo_from += plane_size;
          edge_from += plane_size;
          if (fetches) halo_ahead = *halo_from;
          if (edge) edge_ahead = *edge_from;
        }
      }
      // Three reconstructions in one stretch of code. x: wind by cos φ. w: against ε' cos φ. φ: on
      // the half circle by ε' alone, F at m+½.
      if (i > begin) flux_behind = flux_ahead;
      flux_ahead = x_flux();
      const bool up_wind = forward == (slope < 0.0);
      const int stride = up_wind ? n : -n;
      const double* h = own_speed + here + (up_wind ? -2 * n : 3 * n);
      along_w =
          slope * w_factor *
          weno5(h[0], h[stride], h[2 * stride], h[3 * stride], h[4 * stride], epsilon, quotient);
      if constexpr (!kSplit) {
        const bool left = slope >= 0.0;
        const double* g = own_angle + here + (left ? -2 : 3);
        const int one = left ? 1 : -1;
        along_phi = weno5(g[0], g[one], g[2 * one], g[3 * one], g[4 * one], epsilon, quotient);
        along_phi = left ? along_phi : -along_phi;
      } else {
        const double *g = own_angle + here, *d = g + frame.padded;
        along_phi = weno5(g[-2], g[-1], g[0], g[1], g[2], epsilon, quotient) +
                    weno5(d[3], d[2], d[1], d[0], d[-1], epsilon, quotient);
      }
      w_flux[here] = along_w;
      phi_flux[here] = along_phi;
      if (in_block) moved[here] = weight_m * flux_ahead;
      slope = slope_next;
    }
    // What the phase before left: the current behind column i−1, the sums of column i−2.
    if (i > begin || begin == 0) sum_current(i, there);
    if (i > begin + 1) sum_rows(here);
    if (finishes) {
      const double beside = phi_flux[there + turn];
      const double after = !kFull && m == n - 1 ? -beside : before_phi;
      const double before = !kFull && m == 0 ? -before_phi : beside;
      const double rhs = gain - loss * centre - (flux_after - flux_before) * per_dx -
                         (before_w - w_flux[there - n]) * per_dw -
                         fabs(slope_before) * turning_l * (after - before);
      const double fresh = stage.share_n * old + stage.share_s * centre + dt_share * rhs;
      stage.out[cell] = fresh;
      result[there] = weight_m * fresh;
    }
    row += p.nw;
    cell += plane_size;
    __syncthreads();
  };
  int here = 0;
  for (int i = begin; i <= end; ++i) {
    column(i, here);
    here = size - here;
  }
  sum_rows(here);
}

using TransportKernel = void (*)(DeviceProblem, DevicePoint, StageBuffers, TransportShape);

/// The variant that a problem and its shape need; the angles of the standard mesh and of its halves
/// are known to the compiler.
inline TransportKernel transport_kernel_of(const TransportProblem& problem,
                                           const TransportShape& shape) {
  const bool full = problem.range == AngleRange::kFull;
  const bool whole = shape.tile == full_tile(full, problem.angles);
  if (full)
    return whole && problem.angles == 48 ? transport_kernel<true, true, 48>
                                         : transport_kernel<true, true, 0>;
  if (problem.phi_flux == PhiFlux::kSplit) return transport_kernel<true, false, 0>;
  if (whole && problem.angles == 25) return transport_kernel<false, false, 25>;
  if (whole && problem.angles == 13) return transport_kernel<false, false, 13>;
  return transport_kernel<false, false, 0>;
}

}  // namespace quasi::mosfet::cuda
