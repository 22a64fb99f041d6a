#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/candidate_queue_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/contract_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/evaluate_queue_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/find_ranges_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Writes the sums of the group for λ', of all warps in rising order.
template <typename V>
__device__ __forceinline__ void write_exchanged(const ScatterArguments& a,
                                                const ScatterBlock<V>& b) {
  double* out = b.exchanged_out(a);
  for (int i = threadIdx.x; i < b.branches * kExchanged * b.n_values; i += kThreads) {
    double value = 0.0;
    for (int w = 0; w < kWarps; ++w) value += b.exchanged[w * b.n_exchanged + i];
    out[i] = value;
  }
}

/// Adds Γ of the group to the columns λ' of the collision operator: −Γ if λ' is destroyed with λ,
/// +Γ if it is created.
template <typename V>
__device__ __forceinline__ void add_partner_columns(const ScatterArguments& a,
                                                    const ScatterBlock<V>& b) {
  if (static_cast<int>(threadIdx.x) >= b.branches) return;
  double gamma = 0.0;
  for (int w = 0; w < kWarps; ++w) {
    gamma += b.sum[w * b.n_sums + threadIdx.x];
    b.sum[w * b.n_sums + threadIdx.x] = 0.0;
  }
  const long long units = __double2ll_rn(-V::kSign * gamma * a.collision.scale[b.local_row]);
  atomicAdd(a.collision.matrix + b.local_row * a.tables.n_modes() + b.q1 * b.n_branches +
                b.first_branch + threadIdx.x,
            static_cast<unsigned long long>(units));
}

/// Writes the sums of the block for λ, of all warps in rising order.
template <typename V>
__device__ __forceinline__ void write_sums(const ScatterArguments& a, const ScatterBlock<V>& b) {
  double* out = output_of<V>(a, b.block, b.n_values);
  for (int i = threadIdx.x; i < output_size<V>(b.n_values); i += kThreads) {
    double value = 0.0;
    for (int w = 0; w < kWarps; ++w)
      value += b.sum[w * b.n_sums + (V::kCollision ? kGroup : 0) + i];
    out[i] = value;
  }
}

/// Sums all processes of one mode λ with one q': q' = Q − q for ++ and +- (V::kSign = 1), q − Q for
/// -- (V::kSign = −1). One block computes one (λ, Q) (docs/theory/thermal.md 7, 11).
///
/// The branches s' of λ' are taken in groups. For each group the block
///   1. finds the ranges of the sorted table that can be resonant,
///   2. contracts the force constants with λ and λ' (step 2 of ContractionPlan4ph),
///   3. sieves the candidates into a queue for each warp and evaluates the queue whenever it holds
///      work for all lanes. No warp waits for another and nothing is stored outside the block.
/// The table belongs to the representative of Q's star. Candidates are tested in its frame, where
/// the rotated λ and λ' have unchanged energies and widths. Accepted pairs are rotated back.
/// @tparam V        ScatterVariant
/// @tparam kBlocks  least number of blocks on a multiprocessor, which bounds the registers
template <typename V, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) scatter_kernel(const ScatterArguments a) {
  ScatterBlock<V> b;
  if (!find_row(a, b)) {
    double* out = output_of<V>(a, b.block, b.n_values);
    for (int i = threadIdx.x; i < output_size<V>(b.n_values); i += kThreads) out[i] = 0.0;
    return;
  }
  extern __shared__ __align__(16) double shared[];
  divide_shared_memory(a, shared, b);
  __shared__ CandidateRanges ranges;
  __shared__ typename RangeScan::TempStorage scan_storage;

  for (b.first_branch = 0; b.first_branch < b.n_branches; b.first_branch += a.group) {
    b.branches = min(a.group, b.n_branches - b.first_branch);
    if (b.both)
      for (int i = threadIdx.x; i < kWarps * b.n_exchanged; i += kThreads) b.exchanged[i] = 0.0;
    const std::int32_t n_candidates = find_ranges(a, b, ranges, scan_storage);
    load_partner_eigenvectors(a, b);
    __syncthreads();
    if (n_candidates == 0) {  // equal for all threads
      double* out = b.exchanged_out(a);
      for (int i = threadIdx.x; b.both && i < b.branches * kExchanged * b.n_values; i += kThreads)
        out[i] = 0.0;
      continue;
    }
    b.active = 0;
    for (int w = 0; w < kWarps; ++w) b.active |= ranges.warp_active[w];
    contract(a, b);
    __syncthreads();

    CandidateCursor cursor(a.tables.rules, n_candidates, b.warp);
    for (;;) {
      fill_queue(a, b, ranges, cursor);
      if (cursor.queued == 0) break;
      __syncwarp();
      evaluate(a, b, min(cursor.queued, V::kPerWarp));
      drop_evaluated(b, cursor);
    }
    __syncthreads();
    if (b.both) {
      write_exchanged(a, b);
      __syncthreads();
    }
    if constexpr (V::kCollision) {
      add_partner_columns(a, b);
      __syncthreads();
    }
  }
  __syncthreads();
  write_sums(a, b);
}

}  // namespace quasi::thermal::cuda4ph
