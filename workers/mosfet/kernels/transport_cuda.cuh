#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/physics/gradient.hpp"
#include "workers/mosfet/physics/weno5.hpp"

namespace quasi::mosfet::cuda {

/// Shape of the fused transport kernel: a block owns `tile` rows of w of one state and all angles, and
/// marches along a segment of x. Thread (r, m): r = 0 only closes the lower w interface of the tile.
struct TransportShape {
  int tile = 0;      ///< rows of w of a block
  int threads = 0;   ///< (tile+1)·angles, rounded up to whole warps
  int tiles = 0;     ///< along w
  int segments = 0;  ///< along x
  int columns = 0;   ///< of a segment
  QUASI_HD int warps() const { return threads / 32; }
  std::size_t shared_bytes(int angles) const {
    const std::size_t plane = static_cast<std::size_t>(tile + 6) * angles;
    const std::size_t padded = static_cast<std::size_t>(tile + 1) * (angles + 6);
    return sizeof(double) * (2 * plane + 4 * padded + 3 * static_cast<std::size_t>(tile + 2) * angles + 64);
  }
};

inline TransportShape transport_shape(const TransportProblem& problem, int multiprocessors) {
  TransportShape shape;
  shape.tile = 512 / problem.angles - 1;
  if (shape.tile > problem.nw) shape.tile = problem.nw;
  if (shape.tile < 1) shape.tile = 1;
  shape.threads = ((shape.tile + 1) * problem.angles + 31) / 32 * 32;
  shape.tiles = (problem.nw + shape.tile - 1) / shape.tile;
  // Enough segments that the last wave of blocks is nearly full; each costs one more x flux.
  const int nx = problem.structure.nx;
  double best = 1e300;
  for (int segments = 1; segments <= nx / 6; ++segments) {
    const int columns = (nx + segments - 1) / segments;
    const int blocks = shape.tiles * problem.n_states() * ((nx + columns - 1) / columns);
    const int waves = (blocks + multiprocessors - 1) / multiprocessors;
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

/// One Runge–Kutta stage of the transport of one point, fused: fluxes in x, w and φ, gain and loss, the
/// update, Φ̃ of the result, and each warp's share of the current at every half node.
///
/// Each Φ is read from memory once by its own thread (three planes ahead in x, kept in registers), the
/// x flux stays in a register for the next plane, and the w and φ fluxes are exchanged through shared
/// memory. Sums run in a fixed tree: same bits every time.
template <bool kSplit, bool kFull>
__global__ void __launch_bounds__(544, 1)
transport_kernel(DeviceProblem p, DevicePoint q, StageBuffers stage, TransportShape shape) {
  if (!q.clock->active) return;
  extern __shared__ double shared[];
  const int n = p.angles, tile = shape.tile;
  const int plane = (tile + 6) * n, row_pad = n + 6, padded = (tile + 1) * row_pad;
  double* speed_plane = shared;                       // [2][tile+6][n]: vΦ of rows first−3 … first+tile+2
  double* angle_plane = speed_plane + 2 * plane;      // [2 or 2×split][tile+1][n+6]
  double* w_flux = angle_plane + 4 * padded;          // [tile+1][n]
  double* phi_flux = w_flux + (tile + 1) * n;         // [tile+1][n]
  double* result = phi_flux + (tile + 1) * n;         // [tile+1][n]: weight·Φ^{new}
  double* slope_of = result + (tile + 1) * n;         // ε' of the segment's columns [columns ≤ 64]

  const int state = blockIdx.y, first = blockIdx.x * tile;
  const int begin = blockIdx.z * shape.columns;
  const int end = min(p.nx, begin + shape.columns);
  const int valley = state / p.subbands;
  const int t = threadIdx.x, r = t / n, m = t - r * n;
  const int l = first - 1 + r;
  const bool in_block = r <= tile;
  const bool own = in_block && r > 0 && l < p.nw;
  const long long plane_size = static_cast<long long>(p.nw) * n;
  const double* base_s = stage.pdf_s + static_cast<long long>(state) * p.nx * plane_size;
  const double* speed = p.speed + valley * p.nw;
  const double dt = q.clock->dt;

  {
    const double* row = q.energy + static_cast<long long>(p.family_of[valley] * p.subbands + state % p.subbands) * p.nx;
    for (int k = t; k < end - begin; k += blockDim.x) slope_of[k] = gradient_at(row, begin + k, p.nx, p.dx);
  }

  const double cos_m = in_block ? p.cos_phi[m] : 0.0;
  const double sin_m = in_block ? p.sin_phi[m] : 0.0;
  const double weight_m = in_block ? p.weight[m] : 0.0;
  const double speed_l = own ? speed[l] : 0.0;
  const double turning_l = own ? p.turning[valley * p.nw + l] : 0.0;
  const bool forward = cos_m > 0.0;
  const long long at_lm = own ? static_cast<long long>(l) * n + m : 0;

  // Φ at plane i, with the contacts' distributions beyond the ends.
  const double inflow_source = own ? q.inflow_source[state * p.nw + l] : 0.0;
  const double inflow_drain = own ? q.inflow_drain[state * p.nw + l] : 0.0;
  const auto value = [&](int i) {
    if (i < 0) return cos_m > 0.0 ? inflow_source : base_s[at_lm];
    if (i >= p.nx) return cos_m < 0.0 ? inflow_drain : base_s[(p.nx - 1) * plane_size + at_lm];
    return base_s[i * plane_size + at_lm];
  };
  // vΦ of a row outside the own rows: the mirrored angle below w = 0, nothing above the top.
  const auto halo = [&](int i, int row, int angle) {
    if (row >= p.nw) return 0.0;
    const int k = row < 0 ? -1 - row : row;
    const int a = row < 0 ? p.mirror[angle] : angle;
    return speed[k] * base_s[i * plane_size + static_cast<long long>(k) * n + a];
  };
  // Which halo value this thread fetches: rows first−3, first−2 and first+tile … first+tile+2.
  const int halo_row = t / n, halo_angle = t - halo_row * n;
  const bool fetches = halo_row < 5;
  const int halo_l = halo_row < 2 ? first - 3 + halo_row : first + tile + halo_row - 2;
  const int halo_at = (halo_row < 2 ? halo_row : tile + 1 + halo_row) * n + halo_angle;

  double v0 = 0, v1 = 0, v2 = 0, v3 = 0, v4 = 0, v5 = 0;
  if (own) {
    v0 = value(begin - 3);
    v1 = value(begin - 2);
    v2 = value(begin - 1);
    v3 = value(begin);
    v4 = value(begin + 1);
    v5 = value(begin + 2);
  }
  const auto x_flux = [&]() {
    const double a = forward ? v0 : v5, b = forward ? v1 : v4, c = forward ? v2 : v3;
    const double d = forward ? v3 : v2, e = forward ? v4 : v1;
    return cos_m == 0.0 ? 0.0 : speed_l * cos_m * weno5(a, b, c, d, e, p.weno_epsilon);
  };
  double* partial = q.current_partial +
      (static_cast<long long>(state) * shape.tiles + blockIdx.x) * (p.nx + 1) * shape.warps();
  const auto keep_current = [&](int half_node, double flux) {
    double sum = own ? weight_m * flux : 0.0;
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if ((t & 31) == 0) {
      double* slot = partial + static_cast<long long>(half_node) * shape.warps() + t / 32;
      *slot = (stage.first ? 0.0 : *slot) + stage.flux_weight * sum;
    }
  };

  // Φ̃ of the rows of a finished column, one warp a row; runs between two barriers of the next column.
  const auto sum_rows = [&](int i) {
    const int lane = t & 31;
    for (int k = 1 + t / 32; k <= tile && first - 1 + k < p.nw; k += shape.warps()) {
      double sum = 0.0;
      for (int a = lane; a < n; a += 32) sum += result[k * n + a];
      for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
      if (lane == 0) q.angle_sum[(static_cast<long long>(state) * p.nx + i) * p.nw + first - 1 + k] = sum;
    }
  };

  double flux_before = own ? x_flux() : 0.0;
  if (begin == 0) keep_current(0, flux_before);
  double ahead = own ? value(begin + 3) : 0.0;
  double halo_ahead = fetches ? halo(begin, halo_l, halo_angle) : 0.0;
  double edge_ahead = in_block && r == 0 ? halo(begin, l, m) : 0.0;
  __syncthreads();

  for (int i = begin; i < end; ++i) {
    const double slope = slope_of[i - begin];
    const double sigma = slope < 0.0 ? -1.0 : 1.0;
    const int parity = (i - begin) & 1;
    double* vs = speed_plane + parity * plane;
    double* plus = angle_plane + parity * (kSplit ? 2 : 1) * padded;
    double* minus = plus + padded;
    const double centre = v3;

    // The plane's vΦ and sin φ Φ (or its split halves) for the neighbours.
    if (own) vs[(r + 2) * n + m] = speed_l * centre;
    if (in_block && r == 0) vs[2 * n + m] = edge_ahead;
    if (in_block && r > 0 && l >= p.nw) vs[(r + 2) * n + m] = 0.0;
    if (fetches) vs[halo_at] = halo_ahead;
    if (own) {
      double* up = plus + r * row_pad + 3;
      double* down = minus + r * row_pad + 3;
      if constexpr (!kSplit) {
        const double g = sin_m * centre;
        up[m] = g;
        if (m >= 1 && m <= 3) up[-m] = -g;
        if (m >= n - 4 && m <= n - 2) up[2 * (n - 1) - m] = -g;
      } else {
        const double u = 0.5 * (sigma * sin_m + 1.0) * centre;
        const double d = 0.5 * (sigma * sin_m - 1.0) * centre;
        up[m] = u;
        down[m] = d;
        if constexpr (!kFull) {
          if (m >= 1 && m <= 3) { up[-m] = -d; down[-m] = -u; }
          if (m >= n - 4 && m <= n - 2) { up[2 * (n - 1) - m] = -d; down[2 * (n - 1) - m] = -u; }
        } else {
          if (m >= n - 3) { up[m - n] = u; down[m - n] = d; }
          if (m <= 2) { up[m + n] = u; down[m + n] = d; }
        }
      }
    }
    v0 = v1; v1 = v2; v2 = v3; v3 = v4; v4 = v5; v5 = ahead;
    if (i + 1 < end) {
      if (own) ahead = value(i + 4);
      if (fetches) halo_ahead = halo(i + 1, halo_l, halo_angle);
      if (in_block && r == 0) edge_ahead = halo(i + 1, l, m);
    }
    const long long row = (static_cast<long long>(state) * p.nx + i) * p.nw + l;
    double old = 0.0, gain = 0.0, loss = 0.0;
    if (own) {
      if (stage.share_n != 0.0) old = stage.pdf_n[row * n + m];
      if (p.scatters) {
        gain = q.gain[row];
        loss = q.loss[row];
      }
    }
    __syncthreads();
    if (i > begin) sum_rows(i - 1);

    // w: wind against ε' cos φ; closed at the top.
    if (in_block) {
      double flux = 0.0;
      if (l < p.nw - 1 && cos_m != 0.0) {
        const double* h = vs + r * n + m;
        const bool up_wind = forward == (slope < 0.0);
        const double a = h[up_wind ? 0 : 5 * n], b = h[up_wind ? n : 4 * n], c = h[up_wind ? 2 * n : 3 * n];
        const double d = h[up_wind ? 3 * n : 2 * n], e = h[up_wind ? 4 * n : n];
        flux = -slope * cos_m * weno5(a, b, c, d, e, p.weno_epsilon);
      }
      w_flux[r * n + m] = flux;
    }
    // φ: upwind with the sign of ε' on the half circle, or split; F at m+½.
    if (own && (kFull || m < n - 1)) {
      const double* g = plus + r * row_pad + 3 + m;
      if constexpr (!kSplit) {
        const bool left = sigma > 0.0;
        const double a = g[left ? -2 : 3], b = g[left ? -1 : 2], c = g[left ? 0 : 1];
        const double d = g[left ? 1 : 0], e = g[left ? 2 : -1];
        phi_flux[r * n + m] = sigma * weno5(a, b, c, d, e, p.weno_epsilon);
      } else {
        const double* h = minus + r * row_pad + 3 + m;
        phi_flux[r * n + m] = weno5(g[-2], g[-1], g[0], g[1], g[2], p.weno_epsilon) +
                              weno5(h[3], h[2], h[1], h[0], h[-1], p.weno_epsilon);
      }
    }
    const double flux_after = own ? x_flux() : 0.0;
    keep_current(i + 1, flux_after);
    __syncthreads();

    if (own) {
      const double* turn = phi_flux + r * n;
      double before, after;
      if constexpr (kFull) {
        after = turn[m];
        before = turn[m == 0 ? n - 1 : m - 1];
      } else {
        after = m == n - 1 ? -turn[n - 2] : turn[m];
        before = m == 0 ? -turn[0] : turn[m - 1];
      }
      const double rhs = gain - loss * centre - (flux_after - flux_before) / p.dx -
                         (w_flux[r * n + m] - w_flux[(r - 1) * n + m]) / p.dw -
                         fabs(slope) * turning_l * ((after - before) / p.dphi);
      const double fresh = stage.share_n * old + stage.share_s * (centre + dt * rhs);
      stage.out[row * n + m] = fresh;
      result[r * n + m] = weight_m * fresh;
      flux_before = flux_after;
    }
  }
  __syncthreads();
  sum_rows(end - 1);
}

/// Φ̃ of a whole pdf, one warp a row.
__global__ void angle_sum_kernel(DeviceProblem p, const double* pdf, double* angle_sum) {
  const long long rows = static_cast<long long>(p.n_states) * p.nx * p.nw;
  const long long warp = (blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x) / 32;
  const int lane = threadIdx.x & 31;
  if (warp >= rows) return;
  double sum = 0.0;
  for (int m = lane; m < p.angles; m += 32) sum += p.weight[m] * pdf[warp * p.angles + m];
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) angle_sum[warp] = sum;
}

/// ϱ = Φ* Δw Σ_w Φ̃ of every state of a column, one warp a state.
__global__ void sheet_kernel(DeviceProblem p, DevicePoint q) {
  const int i = blockIdx.x, lane = threadIdx.x & 31;
  for (int state = threadIdx.x / 32; state < p.n_states; state += blockDim.x / 32) {
    const double* row = q.angle_sum + (static_cast<long long>(state) * p.nx + i) * p.nw;
    double sum = 0.0;
    for (int l = lane; l < p.nw; l += 32) sum += row[l];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) q.sheet[state * p.nx + i] = sum * p.dw * q.pdf_scale;
  }
}

/// Per block: smallest Φ, largest Φ̃ of the top cells, largest Φ̃ of all; [3][blocks]. A NaN stays.
__global__ void extremes_kernel(DeviceProblem p, const double* pdf, const double* angle_sum, double* out) {
  __shared__ double kept[3][32];
  const long long rows = static_cast<long long>(p.n_states) * p.nx * p.nw;
  const long long from = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  double smallest = 0.0, top = 0.0, largest = 0.0;
  for (long long k = from; k < rows * p.angles; k += stride) {
    const double value = pdf[k];
    if (!(value >= smallest)) smallest = value;
  }
  for (long long k = from; k < rows; k += stride) {
    largest = fmax(largest, angle_sum[k]);
    if (k % p.nw == p.nw - 1) top = fmax(top, angle_sum[k]);
  }
  for (int step = 16; step > 0; step >>= 1) {
    const double other = __shfl_xor_sync(0xffffffffu, smallest, step);
    if (!(other >= smallest)) smallest = other;
    top = fmax(top, __shfl_xor_sync(0xffffffffu, top, step));
    largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  }
  if ((threadIdx.x & 31) == 0) {
    kept[0][threadIdx.x / 32] = smallest;
    kept[1][threadIdx.x / 32] = top;
    kept[2][threadIdx.x / 32] = largest;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < static_cast<int>(blockDim.x) / 32; ++k) {
    if (!(kept[0][k] >= smallest)) smallest = kept[0][k];
    top = fmax(top, kept[1][k]);
    largest = fmax(largest, kept[2][k]);
  }
  out[blockIdx.x] = smallest;
  out[gridDim.x + blockIdx.x] = top;
  out[2 * gridDim.x + blockIdx.x] = largest;
}

/// Δt of a step, from the largest rate over the points of phase space. One block.
__global__ void time_step_kernel(DeviceProblem p, DevicePoint q) {
  __shared__ double slopes[32], best[32];
  PointClock* clock = q.clock;
  const bool active = !clock->failed && clock->time <= clock->stop - 1e-9;
  __syncthreads();
  if (threadIdx.x == 0) clock->active = active;
  if (!active) return;
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  double largest = 0.0;
  for (int v = 0; v < p.n_valleys; ++v) {
    const double* rows = q.energy + static_cast<long long>(p.family_of[v]) * p.subbands * p.nx;
    double slope = 0.0;
    for (int k = threadIdx.x; k < p.subbands * p.nx; k += blockDim.x)
      slope = fmax(slope, fabs(gradient_at(rows + k / p.nx * p.nx, k % p.nx, p.nx, p.dx)));
    for (int step = 16; step > 0; step >>= 1) slope = fmax(slope, __shfl_xor_sync(0xffffffffu, slope, step));
    if (lane == 0) slopes[warp] = slope;
    __syncthreads();
    slope = lane < warps ? slopes[lane] : 0.0;
    for (int step = 16; step > 0; step >>= 1) slope = fmax(slope, __shfl_xor_sync(0xffffffffu, slope, step));
    for (int k = threadIdx.x; k < p.nw * p.angles; k += blockDim.x) {
      const int l = k / p.angles, m = k - l * p.angles;
      const double along = p.speed[v * p.nw + l] * (1.0 / p.dx + slope / p.dw);
      const double around = slope * p.turning[v * p.nw + l] / p.dphi;
      largest = fmax(largest, along * fabs(p.cos_phi[m]) + around * fabs(p.sin_phi[m]));
    }
    __syncthreads();
  }
  for (int step = 16; step > 0; step >>= 1) largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  if (lane == 0) best[warp] = largest;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < warps; ++k) largest = fmax(largest, best[k]);
    clock->dt = fmin(p.cfl * clock->shrink / largest, clock->stop - clock->time);
    clock->chord_iterations = 0;
  }
}

/// Ends a step: the current at every half node (one block each), clock and record (block 0).
__global__ void record_kernel(DeviceProblem p, DevicePoint q, TransportShape shape) {
  if (!q.clock->active) return;
  __shared__ double sums[32];
  const int half_node = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const int groups = p.n_states * shape.tiles, warps = shape.warps();
  double sum = 0.0;
  for (int k = threadIdx.x; k < groups * warps; k += blockDim.x)
    sum += q.current_partial[(static_cast<long long>(k / warps) * (p.nx + 1) + half_node) * warps + k % warps];
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0.0;
    for (int k = 0; k < static_cast<int>(blockDim.x) / 32; ++k) total += sums[k];
    const double current = 2.0 * p.dw * q.pdf_scale * total;
    q.current[half_node] = current;
    q.current_integral[half_node] += q.clock->dt * current;
  }
}

/// The last kernel of a step: one warp.
__global__ void clock_kernel(DeviceProblem p, DevicePoint q) {
  PointClock* clock = q.clock;
  if (!clock->active) return;
  double charge = 0.0;
  for (int k = threadIdx.x; k < p.n_states * p.nx; k += 32) charge += 2.0 * q.sheet[k] * p.dx;
  for (int step = 16; step > 0; step >>= 1) charge += __shfl_down_sync(0xffffffffu, charge, step);
  if (threadIdx.x != 0) return;
  clock->time += clock->dt;
  clock->last_dt = clock->dt;
  ++clock->step;
  StepRecord record;
  record.time_fs = clock->time;
  record.dt_fs = clock->dt;
  record.current_source = q.current[0];
  record.current_mid = q.current[p.nx / 2];
  record.current_drain = q.current[p.nx];
  record.charge_nm = charge;
  record.chord_iterations = clock->chord_iterations;
  record.residual = clock->residual;
  q.records[clock->records++] = record;
}

}  // namespace quasi::mosfet::cuda
