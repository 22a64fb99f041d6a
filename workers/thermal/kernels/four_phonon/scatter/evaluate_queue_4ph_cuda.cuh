#pragma once

#include "workers/thermal/kernels/four_phonon/scatter/accumulate_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/share_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/swapped_elements_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/weigh_process_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Evaluates the matrix elements of `count` entries of the queue, weighs them and adds them to the
/// sums of the rates. See docs/theory/thermal.md 11.4 for the equations.
/// @param of  A of the s' of the lane's first entry
template <typename V>
__device__ __forceinline__ void evaluate_rates(const ScatterArguments& a, const ScatterBlock<V>& b,
                                               int count, const Complex<typename V::Real>* of) {
  using Real = typename V::Real;
  constexpr int kPerThread = V::kPerThread;
  const Queue& queue = b.queue;
  const int first = kPerThread * b.lane;
  int at[kPerThread];
  double squared[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i)
    at[i] = first + i < count && queue.code[first + i] >= 0 ? first + i : -1;
  {
    LastTwo last[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i)  // the first entry replaces an absent one
      last[i] = last_two_of(a, b, at[i] >= 0 ? at[i] : first < count ? first : 0);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPerThread; ++i)
      if (at[i] >= 0) queue.modes[at[i]] = {last[i].mode2, last[i].mode3};
    if constexpr (V::kForm == Form4ph::kSwapped)
      squared_elements_swapped<kPerThread, kThreads, Real>(a.path, b.program, of, last, b.slot,
                                                           squared);
    else
      squared[0] = squared_element<V::kAtoms, Real>(a.tables, a.path, b.program, of, last[0]);
#pragma unroll 1
    for (int i = 0; i < kPerThread; ++i)  // long code, which the caches should hold once
      if (first + i < count && queue.code[first + i] >= 0) {
        const int2 modes = queue.modes[first + i];
        store_weights(a, b, first + i,
                      {modes.x, modes.y, a.path.zone[modes.x / b.n_branches], 0.0});
      }
  }
  __syncwarp();
  add_rates(a, b, at, squared);
  if constexpr (V::kShared) share_processes(a, b, at, squared);
}

/// Weighs `count` entries of the queue, evaluates those that count, and adds them to the collision
/// operator or to the sums of a sample.
/// @param of  A of the s' of the lane's first entry
template <typename V>
__device__ __forceinline__ void evaluate_terms(const ScatterArguments& a, const ScatterBlock<V>& b,
                                               int count, const Complex<typename V::Real>* of) {
  using Real = typename V::Real;
  const int first = V::kPerThread * b.lane;
#pragma unroll
  for (int i = 0; i < V::kPerThread; ++i) {
    ProcessTerm p;
    if (first + i < count && b.queue.code[first + i] >= 0) {
      const LastTwo last[1] = {last_two_of(a, b, first + i)};
      p = weigh_process(a, b, first + i, last[0]);
      if (p.channel >= 0 && !(V::kUse == Use::kThinned && !(p.probability > 0.0))) {
        if constexpr (V::kForm == Form4ph::kSwapped) {
          double squared[1];
          squared_elements_swapped<1, kThreads, Real>(a.path, b.program, of, last, b.slot, squared);
          p.squared = squared[0];
        } else {
          p.squared = squared_element<V::kAtoms, Real>(a.tables, a.path, b.program, of, last[0]);
        }
      }
    }
    __syncwarp();
    if constexpr (V::kCollision)
      add_collision(a, b, p);
    else
      add_sample(a, b, p);
  }
}

/// Evaluates and adds the first `count` entries of the queue, kPerThread for each lane.
template <typename V>
__device__ __forceinline__ void evaluate(const ScatterArguments& a, const ScatterBlock<V>& b,
                                         int count) {
  const int first = V::kPerThread * b.lane;
  const auto* of =
      b.pair + b.queue.code[first < count ? first : 0] % kNormalBit / 4 * a.tables.n_pairs * 9;
  if constexpr (sums_rates(V::kUse))
    evaluate_rates(a, b, count, of);
  else
    evaluate_terms(a, b, count, of);
}

}  // namespace quasi::thermal::cuda4ph
