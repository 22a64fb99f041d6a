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

/// Triples that one slot of threads contracts, one after the other: an equal share of all.
struct TripleShare {
  int first, last;
  /// @param slot  below kContractionSlots
  __device__ __forceinline__ TripleShare(int slot, int n_triples)
      : first(slot * n_triples / kContractionSlots),
        last((slot + 1) * n_triples / kContractionSlots) {}
};

/// Sums an equal share of the triples in each slot of nine threads, one for each element of a pair.
/// The sum of a pair goes to its place in A if the slot has the first triple of the pair, else to
/// `carried` [slot][kGroup][9].
template <typename V>
__device__ __forceinline__ void contract_shares(const ScatterArguments& a, const ScatterBlock<V>& b,
                                                Complex<double>* carried) {
  const Tables4ph& t = a.tables;
  const int slot = static_cast<int>(threadIdx.x) / 9, element = static_cast<int>(threadIdx.x) % 9;
  if (slot >= kContractionSlots) return;
  const TripleShare share(slot, t.n_triples);
  if (share.first == share.last) return;
  const Complex<double>* contracted =
      t.contracted + static_cast<std::int64_t>(b.row) * t.n_triples * 27 + element;
  const Complex<double>* phases = t.phase + static_cast<std::int64_t>(b.q1) * t.n_cells;
  Complex<double> accumulated[kGroup] = {};
  const auto flush = [&](std::int32_t place, bool is_carried) {
    Complex<typename V::Real>* to = b.pair + place / 4 + place % 4 * element;
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      if ((b.active >> g & 1u) != 0) {
        if (is_carried)
          carried[(slot * kGroup + g) * 9 + element] = accumulated[g];
        else
          to[g * t.n_pairs * 9] = rounded<typename V::Real>(accumulated[g]);
      }
      accumulated[g] = {};
    }
  };
  std::int32_t place = a.path.triple_place[share.first];
  bool is_carried = share.first > 0 && a.path.triple_place[share.first - 1] == place;
  for (int triple = share.first; triple < share.last; ++triple) {
    const Complex<double>* e = b.partner + 3 * t.triple_atom[triple];
    Complex<double> phase = load(phases + t.triple_cell[triple]);
    phase.im *= V::kSign;
    const std::int32_t here = a.path.triple_place[triple];
    if (here != place) {
      flush(place, is_carried);
      place = here;
      is_carried = false;
    }
#pragma unroll
    for (int beta = 0; beta < 3; ++beta) {
      const Complex<double> x = fused_multiply(
          phase, load(contracted + 27 * static_cast<std::int64_t>(triple) + 9 * beta));
#pragma unroll
      for (int g = 0; g < kGroup; ++g)
        if ((b.active >> g & 1u) != 0) fused_add(accumulated[g], e[g * b.n_branches + beta], x);
    }
  }
  flush(place, is_carried);
}

/// Adds what later slots carried for a pair of contract_shares(), in rising order of the slots.
/// @param carry  CellPath4ph::carry of the pair
__device__ __forceinline__ Complex<double> with_carried(Complex<double> sum, std::int32_t carry,
                                                        const Complex<double>* carried) {
  const int first = carry & 255, count = carry >> 8;
  for (int slot = first; slot < first + count; ++slot) sum += carried[slot * kGroup * 9];
  return sum;
}

/// Writes A in the form of Form4ph::kSwapped: A_11 + A_12 and A_11 − A_12 as neighbours if a cell
/// has both, else A_11 or the conjugate of A_12 alone.
template <typename V>
__device__ __forceinline__ void contract_swapped(const ScatterArguments& a,
                                                 const ScatterBlock<V>& b) {
  using Real = typename V::Real;
  const int n_pairs = a.tables.n_pairs;
  Complex<double>* carried = b.slot - threadIdx.x;
  contract_shares(a, b, carried);
  __syncthreads();
  for (int element = threadIdx.x; element < a.path.n_stops * 9; element += kThreads) {
    const int first = a.path.stop[element / 9];
    const bool two = a.path.stop[element / 9 + 1] - first == 2;
    const double side = !two && a.path.atoms[first] % 256 == 1 ? -1.0 : 1.0;
    Complex<Real>* to = b.pair + first * 9 + (two ? 2 : 1) * (element % 9);
    const Complex<double>* from = carried + element % 9;
#pragma unroll
    for (int g = 0; g < kGroup; ++g, to += n_pairs * 9, from += 9) {
      if ((b.active >> g & 1u) == 0) continue;
      const auto one = with_carried(rounded<double>(to[0]), a.path.carry[first], from);
      if (two) {
        const auto other = with_carried(rounded<double>(to[1]), a.path.carry[first + 1], from);
        to[0] = rounded<Real>(one + other);
        to[1] = rounded<Real>(one - other);
      } else {
        to[0] = rounded<Real>(Complex<double>{one.re, side * one.im});
      }
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
