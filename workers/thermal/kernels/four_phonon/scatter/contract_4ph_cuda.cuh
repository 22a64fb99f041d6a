#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/scatter_block_4ph_cuda.cuh"

/// Computes step 2 of ContractionPlan4ph with one block: A[p] = Σ_t Σ_β E'_β C[t]_β·· for every s'
/// of the group (docs/theory/thermal.md 11.4). One thread sums one of the nine elements of one pair
/// p.
namespace quasi::thermal::cuda4ph {

/// Adds the triples of the pair `from` to one element of A of every active s'.
template <typename V>
__device__ __forceinline__ void contract_pair(const ScatterArguments& a, const ScatterBlock<V>& b,
                                              int from, int element,
                                              Complex<double> (&accumulated)[kGroup]) {
  const Tables4ph& t = a.tables;
  const Complex<double>* contracted =
      t.contracted + static_cast<std::int64_t>(b.row) * t.n_triples * 27;
  constexpr int kAhead = 3;  // number of triples whose constants are loaded at the same time
  const int end = t.pair_begin[from + 1];
  for (int triple = t.pair_begin[from]; triple < end; triple += kAhead) {
    Complex<double> c[kAhead][3];
    Complex<double> phase[kAhead];
    const Complex<double>* e[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int at = min(triple + u, end - 1);
#pragma unroll
      for (int beta = 0; beta < 3; ++beta)
        c[u][beta] = load(contracted + 27 * static_cast<std::int64_t>(at) + 9 * beta + element % 9);
      phase[u] = load(t.phase + static_cast<std::int64_t>(b.q1) * t.n_cells + t.triple_cell[at]);
      e[u] = b.partner + 3 * t.triple_atom[at];
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (triple + u >= end) break;
      phase[u].im *= V::kSign;
#pragma unroll
      for (int beta = 0; beta < 3; ++beta) {
        const Complex<double> x = fused_multiply(phase[u], c[u][beta]);
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
          if ((b.active >> g & 1u) != 0)
            fused_add(accumulated[g], e[u][g * b.n_branches + beta], x);
      }
    }
  }
}

/// Writes A in the order of the path through the cells.
template <typename V>
__device__ __forceinline__ void contract_pairs(const ScatterArguments& a,
                                               const ScatterBlock<V>& b) {
  const int n_pairs = a.tables.n_pairs;
  for (int element = threadIdx.x; element < n_pairs * 9; element += kThreads) {
    Complex<double> accumulated[kGroup] = {};
    contract_pair(a, b, a.path_order[element / 9], element, accumulated);
#pragma unroll
    for (int g = 0; g < kGroup; ++g)
      if ((b.active >> g & 1u) != 0)
        b.pair[g * n_pairs * 9 + element] = rounded<typename V::Real>(accumulated[g]);
  }
}

/// Writes A in the form of Form4ph::kSwapped: A_11 + A_12 and A_11 − A_12 as neighbours if a cell
/// has both, else A_11 or the conjugate of A_12 alone.
template <typename V>
__device__ __forceinline__ void contract_swapped(const ScatterArguments& a,
                                                 const ScatterBlock<V>& b) {
  using Real = typename V::Real;
  const int n_pairs = a.tables.n_pairs;
  for (int element = threadIdx.x; element < a.path.n_stops * 9; element += kThreads) {
    const int first = a.path.stop[element / 9];
    const bool two = a.path.stop[element / 9 + 1] - first == 2;
    const double side = !two && a.path.atoms[first] % 256 == 1 ? -1.0 : 1.0;
    const int at = two ? 2 * (element % 9) : element % 9;
    Complex<double> accumulated[kGroup] = {};
    contract_pair(a, b, a.path_order[first], element, accumulated);
#pragma unroll
    for (int g = 0; g < kGroup; ++g)
      if ((b.active >> g & 1u) != 0)
        b.pair[(g * n_pairs + first) * 9 + at] =
            rounded<Real>(Complex<double>{accumulated[g].re, side * accumulated[g].im});
    if (!two) continue;
#pragma unroll
    for (int g = 0; g < kGroup; ++g) accumulated[g] = {};
    contract_pair(a, b, a.path_order[first + 1], element, accumulated);
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      if ((b.active >> g & 1u) == 0) continue;
      Complex<Real>* to = b.pair + (g * n_pairs + first) * 9 + at;
      const auto one = rounded<double>(to[0]);
      to[0] = rounded<Real>(one + accumulated[g]);
      to[1] = rounded<Real>(one - accumulated[g]);
    }
  }
}

/// Writes A of every active s' of the group to ScatterBlock::pair.
template <typename V>
__device__ __forceinline__ void contract(const ScatterArguments& a, const ScatterBlock<V>& b) {
  if constexpr (V::kForm == Form4ph::kSwapped)
    contract_swapped(a, b);
  else
    contract_pairs(a, b);
}

}  // namespace quasi::thermal::cuda4ph
