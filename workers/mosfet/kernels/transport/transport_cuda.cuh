#pragma once

#include "workers/mosfet/kernels/transport/transport_march.cuh"

namespace quasi::mosfet::cuda {

/// Runs one Runge–Kutta stage of the transport of one point in one kernel (docs/theory/mosfet.md
/// 5.3, 8). It computes fluxes in x, w and φ, gain and loss, the update, Φ̃ of the result, and the
/// block's share of the current at every half node.
///
/// Each Φ is read from memory once by its own thread, three planes ahead in x, and kept in
/// registers. The x flux stays in a register for the next plane. The w and φ fluxes are exchanged
/// through shared memory. Sums run in a fixed tree and always have the same bits.
template <bool kSplit, bool kFull, int kAngles>
__global__ void __launch_bounds__(kFull ? kFullThreads : kHalfThreads, kFull ? 1 : kHalfBlocks)
    transport_kernel(const __grid_constant__ DeviceProblem p, const __grid_constant__ DevicePoint q,
                     const __grid_constant__ StageBuffers stage,
                     const __grid_constant__ TransportShape shape) {
  if (!q.clock->active) return;
  extern __shared__ double shared[];
  TransportMarch<kSplit, kFull, kAngles> march(p, q, stage, shape, shared);
  march.load_slopes();
  __syncthreads();
  march.open();
  __syncthreads();
  int here = 0;
  for (int i = march.begin(); i <= march.end(); ++i) {
    march.column(i, here);
    __syncthreads();
    here = march.other_frame(here);
  }
  march.close(here);
}

using TransportKernel = void (*)(DeviceProblem, DevicePoint, StageBuffers, TransportShape);

/// Returns the variant for a problem and its shape. The compiler knows the angles of the standard
/// mesh and of its halves.
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
