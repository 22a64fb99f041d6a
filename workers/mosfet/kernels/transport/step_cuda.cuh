#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/transport/inflow.hpp"
#include "workers/mosfet/kernels/transport/transport_cuda.cuh"
#include "workers/mosfet/physics/gradient.hpp"

/// Kernels of a time step beside transport, scattering and the field: Δt, sums of the pdf, inflow
/// and records (docs/theory/mosfet.md 8).
namespace quasi::mosfet::cuda {

/// Sums Φ̃ of a whole pdf with eight lanes for each row, in the order of transport_kernel's sums,
/// so that a restored state has the same bits.
__global__ void angle_sum_kernel(DeviceProblem p, const double* pdf, double* angle_sum) {
  const long long rows = static_cast<long long>(p.n_states) * p.nx * p.nw;
  const long long row = (blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x) / 8;
  double sum = 0.0;
  if (row < rows)
    for (int m = threadIdx.x & 7; m < p.angles; m += 8)
      sum += __dmul_rn(p.weight[m], pdf[row * p.angles + m]);
  for (int step = 4; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (row < rows && (threadIdx.x & 7) == 0) angle_sum[row] = sum;
}

/// Computes ϱ = Φ* Δw Σ_w Φ̃ of every state of a column, one warp for each state.
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

/// Finds for each block the smallest Φ, the largest Φ̃ of the top cells and the largest Φ̃ of all.
/// With Pauli blocking it adds the smallest and largest f̄ and the number of cells outside [0, 1].
/// The result is [6][blocks]. A NaN is kept.
__global__ void extremes_kernel(DeviceProblem p, DevicePoint q, double* out) {
  __shared__ double kept[6][32];
  const long long rows = static_cast<long long>(p.n_states) * p.nx * p.nw;
  const long long from = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  const auto lower = [](double a, double b) { return !(a >= b) ? a : b; };
  double smallest = 0.0, top = 0.0, largest = 0.0, lowest_f = 0.0, highest_f = 0.0, outside = 0.0;
  for (long long k = from; k < rows * p.angles; k += stride) smallest = lower(q.pdf[k], smallest);
  for (long long k = from; k < rows; k += stride) {
    largest = fmax(largest, q.angle_sum[k]);
    if (k % p.nw == p.nw - 1) top = fmax(top, q.angle_sum[k]);
    if (!p.pauli) continue;
    const int valley = static_cast<int>(k / p.nw / p.nx / p.subbands);
    const double f = q.angle_sum[k] / p.grid().kane(static_cast<int>(k % p.nw)) /
                     full_filling(p.root_mass[valley], q.pdf_scale);
    lowest_f = fmin(lowest_f, f);
    highest_f = fmax(highest_f, f);
    outside += f < 0.0 || f > 1.0 ? 1.0 : 0.0;
  }
  double* const mine[6] = {&smallest, &top, &largest, &lowest_f, &highest_f, &outside};
  const auto merge = [&](int which, double a, double b) {
    return which == 0 || which == 3 ? lower(b, a) : which == 5 ? a + b : fmax(a, b);
  };
  for (int which = 0; which < 6; ++which) {
    for (int step = 16; step > 0; step >>= 1)
      *mine[which] = merge(which, *mine[which], __shfl_xor_sync(0xffffffffu, *mine[which], step));
    if ((threadIdx.x & 31) == 0) kept[which][threadIdx.x / 32] = *mine[which];
  }
  __syncthreads();
  if (threadIdx.x >= 6) return;
  const int which = threadIdx.x;
  double value = kept[which][0];
  for (int k = 1; k < static_cast<int>(blockDim.x) / 32; ++k)
    value = merge(which, value, kept[which][k]);
  out[static_cast<long long>(which) * gridDim.x + blockIdx.x] = value;
}

/// Computes Δt of a step from the largest rate over the points of phase space, with one block.
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
    const double* leads = q.lead + (rows - q.energy);
    double slope = 0.0;
    for (int k = threadIdx.x; k < p.subbands * p.nx; k += blockDim.x)
      slope = fmax(slope, fabs(gradient_at(rows + k / p.nx * p.nx, k % p.nx, p.nx, p.dx) +
                               gradient_at(leads + k / p.nx * p.nx, k % p.nx, p.nx, p.dx)));
    for (int step = 16; step > 0; step >>= 1)
      slope = fmax(slope, __shfl_xor_sync(0xffffffffu, slope, step));
    if (lane == 0) slopes[warp] = slope;
    __syncthreads();
    slope = lane < warps ? slopes[lane] : 0.0;
    for (int step = 16; step > 0; step >>= 1)
      slope = fmax(slope, __shfl_xor_sync(0xffffffffu, slope, step));
    // |cos φ| and |sin φ| repeat in every quadrant, so the first quadrant is sufficient.
    const double per_length = 1.0 / p.dx + slope / p.dw, per_angle = slope / p.dphi;
    for (int l = threadIdx.x; l < p.nw; l += blockDim.x) {
      const double along = p.speed[v * p.nw + l] * per_length;
      const double around = p.turning[v * p.nw + l] * per_angle;
      for (int m = 0; m <= p.nphi / 4; ++m)
        largest = fmax(largest, along * p.cos_phi[m] + around * p.sin_phi[m]);
    }
    __syncthreads();
  }
  for (int step = 16; step > 0; step >>= 1)
    largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  if (lane == 0) best[warp] = largest;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < warps; ++k) largest = fmax(largest, best[k]);
    clock->dt = fmin(p.cfl * clock->shrink / largest, clock->stop - clock->time);
    clock->chord_iterations = 0;
  }
}

/// Computes the scale of a contact's neutral inflow (block 0: source, 1: drain) for the stage that
/// starts from `pdf_s`.
__global__ void neutral_inflow_kernel(DeviceProblem p, DevicePoint q, const double* pdf_s) {
  if (!q.clock->active) return;
  __shared__ double sums[32];
  const int side = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const int plane_size = p.nw * p.angles;
  const long long plane = side == 0 ? 0 : p.nx - 1;
  double sum = 0.0;
  for (int k = threadIdx.x; k < p.n_states * plane_size; k += blockDim.x) {
    const int m = k % p.angles;
    if (!enters(p.cos_phi[m], side))
      sum += p.weight[m] * pdf_s[(k / plane_size * p.nx + plane) * plane_size + k % plane_size];
  }
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < static_cast<int>(blockDim.x) / 32; ++k) sum += sums[k];
  q.inflow_scale[side] = inflow_scale(side == 0 ? q.neutral_source : q.neutral_drain, sum * p.dw);
}

/// Ends a step: computes the current at every half node (one block each), and clock and record
/// (block 0).
__global__ void record_kernel(DeviceProblem p, DevicePoint q, TransportShape shape) {
  if (!q.clock->active) return;
  __shared__ double sums[32];
  const int half_node = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const int groups = p.n_states * shape.tiles;
  double sum = 0.0;
  for (int k = threadIdx.x; k < groups; k += blockDim.x)
    sum += q.current_partial[static_cast<long long>(k) * (p.nx + 1) + half_node];
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

/// Sets the clock as the last kernel of a step, with one warp.
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
