#pragma once

#include <cooperative_groups.h>

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/transport/warp_level.cuh"
#include "workers/mosfet/model/working_units.hpp"
#include "workers/mosfet/physics/chord.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"

namespace quasi::mosfet::cuda {

constexpr int kFieldThreads = 512;

inline std::size_t field_shared_bytes(const DeviceProblem& p) {
  const std::size_t n = static_cast<std::size_t>(p.interior);
  return sizeof(double) * (2 * n + 5 * n * p.subbands + 64) +
         sizeof(float) * inverse_stride(p.nx * p.nz);
}

__device__ inline double block_maximum(double value, double* scratch) {
  for (int step = 16; step > 0; step >>= 1)
    value = fmax(value, __shfl_xor_sync(0xffffffffu, value, step));
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int k = 1; k < static_cast<int>(blockDim.x) / 32; ++k) value = fmax(value, scratch[k]);
  return value;
}

/// Poisson's residual at one node; zero where V is given.
__device__ inline double residual_at(const DeviceProblem& p, const double* v, const double* density,
                                     int i, int j) {
  const int at = i * p.nz + j;
  if (p.fixed[at]) return 0.0;
  double n = 0.0;
  for (int f = 0; f < p.n_families; ++f) n += density[f * p.nx * p.nz + at];
  return p.stencil().residual(v, n, p.doping[at], i, j);
}

/// V ← given value, where it is given.
__global__ void fix_potential_kernel(DeviceProblem p, const double* fixed_v, double* potential) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < p.nx * p.nz && p.fixed[at]) potential[at] = fixed_v[at];
}

/// Schrödinger–Poisson with the ϱ of the stage just computed: one cooperative kernel, blocks
/// (column, family), no host in the loop. Prologue: ϱ and the predicted V; then chord steps, each
/// two grid barriers: levels (warm twisted Rayleigh quotients) and density per column, then every
/// block forms the whole residual and its own rows of M⁻¹P. The inverse is bfloat16 and its product
/// single precision: it only steers an iteration whose residual is in double precision, and 0.4 %
/// is what a frozen matrix is off by anyway.
__global__ void __launch_bounds__(kFieldThreads, 1)
    field_kernel(const __grid_constant__ DeviceProblem p, const __grid_constant__ DevicePoint q,
                 int stage) {
  PointClock* clock = q.clock;
  if (!clock->active) return;
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  extern __shared__ double shared[];
  double* diagonal = shared;                                  // [interior]
  double* off = diagonal + p.interior;                        // [interior]
  double* psi_of = off + p.interior;                          // [subbands][interior]
  double* workspace = psi_of + p.subbands * p.interior;       // [subbands][4][interior]
  double* scratch = workspace + 4 * p.subbands * p.interior;  // [64]
  auto* residual =
      reinterpret_cast<float*>(scratch + 64);  // P, [stride] in the order of part_place
  __shared__ int lost;

  const int blocks = gridDim.x;
  const int i = blockIdx.x / p.n_families, family = blockIdx.x % p.n_families;
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int nodes = p.nx * p.nz, stride = inverse_stride(nodes);

  // ϱ of this column and family: one warp a state.
  for (int v = 0; v < p.n_valleys; ++v) {
    if (p.family_of[v] != family) continue;
    for (int b = warp; b < p.subbands; b += warps) {
      const int state = v * p.subbands + b;
      const double* row = q.angle_sum + (static_cast<long long>(state) * p.nx + i) * p.nw;
      double sum = 0.0;
      for (int l = lane; l < p.nw; l += 32) sum += row[l];
      for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
      if (lane == 0) q.sheet[state * p.nx + i] = sum * p.dw * q.pdf_scale;
    }
  }
  if (p.frozen) return;

  // Predictor, third order in Δt at every stage. The first family's block owns the column.
  if (stage == 0 && family == 0)
    for (int j = threadIdx.x; j < p.nz; j += blockDim.x)
      q.v_n[i * p.nz + j] = q.potential[i * p.nz + j];
  const double ratio = clock->last_dt > 0.0 ? clock->dt / clock->last_dt : 0.0;
  if (family == 0)
    for (int j = threadIdx.x; j < p.nz; j += blockDim.x) {
      const int at = i * p.nz + j;
      q.potential[at] =
          predicted_potential(stage, q.v_n[at], stage > 0 ? q.v_1[at] : 0.0,
                              stage > 1 ? q.v_2[at] : 0.0, q.trend[at], q.curvature[at], ratio);
    }
  for (int k = threadIdx.x; k < p.interior - 1; k += blockDim.x)
    off[k] = p.off[family * p.interior + k];
  if (threadIdx.x == 0) lost = 0;
  if (stage == 0 && p.lead > 0.0)
    for (int b = threadIdx.x; b < p.subbands; b += blockDim.x) {
      const int at = (family * p.subbands + b) * p.nx + i;
      q.energy_n[at] = q.energy[at];
    }
  grid.sync();

  int iteration = 0;
  bool converged = false;
  double worst = 0.0;
  while (iteration < kMaxChordSteps) {
    ++iteration;
    for (int k = threadIdx.x; k < p.interior; k += blockDim.x)
      diagonal[k] = p.base[family * p.interior + k] - q.potential[i * p.nz + k + 1];
    __syncthreads();
    double bound = 0.0;
    for (int k = threadIdx.x; k < p.interior; k += blockDim.x)
      bound = fmax(bound, fabs(diagonal[k]) + (k > 0 ? fabs(off[k - 1]) : 0.0) +
                              (k + 1 < p.interior ? fabs(off[k]) : 0.0));
    const double scale_ev = block_maximum(bound, scratch);
    for (int b = warp; b < p.subbands; b += warps) {  // One warp a level.
      double* energy = q.energy + static_cast<long long>(family * p.subbands + b) * p.nx + i;
      const Tridiagonal t{diagonal, off, p.interior, scale_ev};
      double* work = workspace + 4 * b * p.interior;
      double level = *energy;
      __syncwarp();
      const bool good = warp_solve_level(t, b, p.dz, &level,
                                         {psi_of + b * p.interior, work, work + p.interior,
                                          work + 2 * p.interior, work + 3 * p.interior});
      if (lane == 0) {
        *energy = level;
        if (!good) lost = 1;
      }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < p.interior; k += blockDim.x) {
      double sum = 0.0;
      for (int v = 0; v < p.n_valleys; ++v) {
        if (p.family_of[v] != family) continue;
        for (int b = 0; b < p.subbands; ++b) {
          const double psi = psi_of[b * p.interior + k];
          sum += 2.0 * q.sheet[(v * p.subbands + b) * p.nx + i] * psi * psi;
        }
      }
      q.family_density[family * nodes + i * p.nz + k + 1] = sum;
    }
    grid.sync();

    double largest_residual = 0.0;
    for (int k = threadIdx.x; k < stride; k += blockDim.x) {
      const double r =
          k < nodes ? residual_at(p, q.potential, q.family_density, k / p.nz, k % p.nz) : 0.0;
      residual[part_place(k, stride)] = static_cast<float>(r);
      largest_residual = fmax(largest_residual, fabs(r));
    }
    largest_residual = block_maximum(largest_residual, scratch) / p.residual_unit;

    // Rows of this block: one warp a row; the step waits in v_step until all have read V.
    const int rows = (nodes + blocks - 1) / blocks;
    double largest_step = lost ? 1e300 : 0.0;
    for (int k = warp; k < rows; k += warps) {
      const int row = blockIdx.x * rows + k;
      if (row >= nodes) break;
      const double sum = narrow_row_product(q.inverse + static_cast<long long>(row) * stride,
                                            residual, stride, lane);
      if (lane == 0) q.block_max[2 * blocks + row] = sum;
      largest_step = fmax(largest_step, fabs(sum));
    }
    largest_step = block_maximum(largest_step, scratch);
    // Two slots in turn: a fast block may enter the next step before a slow one has read this
    // one's.
    double* slot = q.block_max + (iteration & 1) * blocks;
    if (threadIdx.x == 0) slot[blockIdx.x] = largest_step;
    grid.sync();

    double all = 0.0;
    for (int k = threadIdx.x; k < blocks; k += blockDim.x) all = fmax(all, slot[k]);
    all = block_maximum(all, scratch);
    worst = largest_residual;
    if (!(all < kHopelessChordStep_v)) break;
    const double factor = all > kLargestChordStep_v ? kLargestChordStep_v / all : 1.0;
    const double* step_v = q.block_max + 2 * blocks;
    converged = all <= p.tol_v && largest_residual <= kChordResidual;
    if (family == 0)
      for (int j = threadIdx.x; j < p.nz; j += blockDim.x)
        q.potential[i * p.nz + j] -= factor * step_v[i * p.nz + j];
    if (converged) {
      // The levels follow the last step to first order: δH = −δV.
      for (int b = warp; b < p.subbands; b += warps) {
        double shift = 0.0;
        for (int k = lane; k < p.interior; k += 32) {
          const double psi = psi_of[b * p.interior + k];
          shift += psi * psi * step_v[i * p.nz + k + 1];
        }
        for (int step = 16; step > 0; step >>= 1)
          shift += __shfl_xor_sync(0xffffffffu, shift, step);
        if (lane == 0)
          q.energy[static_cast<long long>(family * p.subbands + b) * p.nx + i] += shift * p.dz;
      }
      break;
    }
    grid.sync();
  }

  __syncthreads();
  if (stage == 2 && p.lead > 0.0)
    for (int b = threadIdx.x; b < p.subbands; b += blockDim.x) {
      const int at = (family * p.subbands + b) * p.nx + i;
      q.lead[at] = p.lead / clock->dt * (q.energy[at] - q.energy_n[at]);
    }
  for (int k = threadIdx.x; k < p.subbands * p.interior; k += blockDim.x) {
    const int b = k / p.interior, j = k - b * p.interior;
    q.psi[(static_cast<long long>(family * p.subbands + b) * p.nx + i) * p.nz + j + 1] = psi_of[k];
  }
  if (family == 0)
    for (int j = threadIdx.x; j < p.nz; j += blockDim.x) {
      const int at = i * p.nz + j;
      const double v = q.potential[at];
      if (stage == 0) q.v_1[at] = v;
      if (stage == 1) q.v_2[at] = v;
      if (stage == 2) {
        q.trend[at] = potential_trend(q.v_n[at], q.v_1[at]);
        q.curvature[at] = potential_curvature(q.v_n[at], q.v_1[at], q.v_2[at]);
      }
    }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    clock->chord_iterations += iteration;
    clock->residual = worst;
    if (!converged) clock->failed = 1;
  }
}

}  // namespace quasi::mosfet::cuda
