#pragma once

#include <algorithm>

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/transport/fast_quotient.cuh"
#include "workers/mosfet/physics/runge_kutta.hpp"
#include "workers/mosfet/physics/weno5.hpp"

/// The x derivative of a stage by itself. It needs Φ alone, neither levels nor rates, so that it
/// runs beside the field of the stage before.
namespace quasi::mosfet::cuda {

constexpr int kXThreads = 256, kXWarps = kXThreads / 32;
constexpr int kXRing = 8;  ///< planes in registers: six of a stencil and two on their way

/// Blocks of x_flux_kernel: `blocks` cover a plane of (w, φ), each marches along a segment of x.
struct XShape {
  int blocks = 0, segments = 0, columns = 0;
  QUASI_HD int groups(int n_states) const {
    return n_states * blocks * kXWarps;
  }  ///< warps that add to one current
};

inline XShape x_shape(const TransportProblem& problem, int multiprocessors) {
  XShape shape;
  const int nx = problem.structure.nx;
  shape.blocks = (problem.nw * problem.angles + kXThreads - 1) / kXThreads;
  const int marches = shape.blocks * problem.n_states();
  // Enough for three blocks a multiprocessor, but segments long against the one flux that each
  // makes again.
  shape.segments =
      std::clamp((3 * multiprocessors + marches - 1) / marches, 1, std::max(1, nx / 8));
  shape.columns = (nx + shape.segments - 1) / shape.segments;
  shape.segments = (nx + shape.columns - 1) / shape.columns;
  return shape;
}

/// F_{i+½} − F_{i−½} of the x flux of `pdf`, and every warp's share of Σ weight·F^x at every half
/// node.
__global__ void __launch_bounds__(kXThreads, 3)
    x_flux_kernel(const __grid_constant__ DeviceProblem p, const __grid_constant__ DevicePoint q,
                  const double* __restrict__ pdf, int stage, XShape shape) {
  if (!q.clock->active) return;
  constexpr unsigned kAll = 0xffffffffu;
  constexpr FastQuotient quotient{};
  const int state = blockIdx.y, valley = state / p.subbands, plane = p.nw * p.angles;
  const int begin = blockIdx.z * shape.columns, end = min(p.nx, begin + shape.columns);
  const int at = blockIdx.x * kXThreads + threadIdx.x, lane = threadIdx.x & 31;
  const bool inside = at < plane;
  const int place = inside ? at : plane - 1, l = place / p.angles, m = place - l * p.angles;
  const double cos_m = p.cos_phi[m], factor = p.speed[valley * p.nw + l] * cos_m,
               weight = inside ? p.weight[m] : 0.0;
  const bool forward = cos_m > 0.0;
  const double inflow_source = q.inflow_scale[0] * q.inflow_source[state * p.nw + l];
  const double inflow_drain = q.inflow_scale[1] * q.inflow_drain[state * p.nw + l];
  const double* from = pdf + static_cast<long long>(state) * p.nx * plane + place;
  // Φ at plane i, with the contacts' distributions beyond the ends.
  const auto value = [&](int i) {
    if (i < 0 && forward) return inflow_source;
    if (i >= p.nx && !forward) return inflow_drain;
    return from[static_cast<long long>(min(max(i, 0), p.nx - 1)) * plane];
  };
  double ring[kXRing];
#pragma unroll
  for (int k = 0; k < kXRing; ++k) ring[k] = value(begin - 3 + k);
  const auto flux = [&](int first) {  // `first`: the ring's place of the stencil's first plane.
    const auto v = [&](int k) { return ring[(first + k) % kXRing]; };
    return __dmul_rn(factor,
                     weno5(forward ? v(0) : v(5), forward ? v(1) : v(4), forward ? v(2) : v(3),
                           forward ? v(3) : v(2), forward ? v(4) : v(1), p.weno_epsilon, quotient));
  };
  const int groups = shape.groups(p.n_states);
  double* partial = q.x_partial + static_cast<long long>(stage) * (p.nx + 1) * groups +
                    (state * shape.blocks + blockIdx.x) * kXWarps + threadIdx.x / 32;
  double before = flux(0);
  if (begin == 0) {
    double sum = weight * before;
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(kAll, sum, step);
    if (lane == 0) *partial = sum;
  }
  double* to = q.along_x + (static_cast<long long>(state) * p.nx + begin) * plane + place;
  for (int base = begin; base < end; base += kXRing) {
    double share[kXRing];
#pragma unroll
    for (int u = 0; u < kXRing; ++u) {
      share[u] = 0.0;
      if (base + u >= end) continue;
      const int next = base + u + 5;
      const double ahead = next < p.nx || forward
                               ? from[static_cast<long long>(min(next, p.nx - 1)) * plane]
                               : inflow_drain;
      const double after = flux(u + 1);
      ring[u] = ahead;
      if (inside) *to = __dsub_rn(after, before);
      to += plane;
      share[u] = weight * after;
      before = after;
    }
    // Eight sums over the warp at once: lanes that differ in bits 4, 3, 2 end with one column each.
#pragma unroll
    for (int half = kXRing / 2, step = 16; half > 0; half >>= 1, step >>= 1)
#pragma unroll
      for (int k = 0; k < half; ++k) {
        const bool upper = (lane & step) != 0;
        const double mine = upper ? share[k + half] : share[k],
                     other = upper ? share[k] : share[k + half];
        share[k] = mine + __shfl_xor_sync(kAll, other, step);
      }
    double sum = share[0];
    sum += __shfl_xor_sync(kAll, sum, 2);
    sum += __shfl_xor_sync(kAll, sum, 1);
    const int column = base + (lane >> 2);
    if ((lane & 3) == 0 && column < end) partial[static_cast<long long>(column + 1) * groups] = sum;
  }
}

/// The current at every half node (one block each) of a step, from the fluxes of its three stages.
__global__ void x_current_kernel(DeviceProblem p, DevicePoint q, XShape shape) {
  if (!q.clock->active) return;
  __shared__ double sums[32];
  const int half_node = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const int groups = shape.groups(p.n_states);
  double sum = 0.0;
  for (int stage = 0; stage < 3; ++stage) {
    const double* partial =
        q.x_partial + (static_cast<long long>(stage) * (p.nx + 1) + half_node) * groups;
    double of_stage = 0.0;
    for (int k = threadIdx.x; k < groups; k += blockDim.x) of_stage += partial[k];
    sum += runge_kutta_stage(stage).flux_weight * of_stage;
  }
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = 0.0;
  for (int k = 0; k < static_cast<int>(blockDim.x) / 32; ++k) total += sums[k];
  const double current = 2.0 * p.dw * q.pdf_scale * total;
  q.current[half_node] = current;
  q.current_integral[half_node] += q.clock->dt * current;
}

}  // namespace quasi::mosfet::cuda
