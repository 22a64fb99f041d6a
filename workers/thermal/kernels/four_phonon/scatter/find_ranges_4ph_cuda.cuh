#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/scatter_block_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Entries [begin, begin + length) of a sorted table.
struct TableInterval {
  std::int32_t begin = 0, length = 0;
};

/// Returns the entries of one class of the table that can be resonant with λ and one λ': those
/// whose energy is within PairKeys4ph::reach of ω ± ω' (docs/theory/thermal.md 11.3). @param branch
/// s' within the group @param channel  0: ++, 1: +-; 0 for --
template <typename V>
__device__ __forceinline__ TableInterval find_interval(const ScatterArguments& a,
                                                       const ScatterBlock<V>& b, int branch,
                                                       int channel, int pair_class) {
  const Tables4ph& t = a.tables;
  const std::int32_t mode0 = b.representative_mode0;
  const std::int32_t mode1 = b.representative_q1 * b.n_branches + b.first_branch + branch;
  const double omega1 = t.omega[mode1];
  const auto kind = V::kSign > 0 && channel == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
  const double energy = t.omega[mode0] + V::kSign * omega1;
  const double reach = a.keys.reach(t.rules, pair_class, t.p(mode0), t.p(mode1));
  if (!(omega1 > 0.0 && (kind == PairKind4ph::kDifference || energy > 0.0))) return {};
  const std::uint32_t low = a.keys.energy_key(kind, energy - reach);
  const std::uint32_t high = a.keys.energy_key(kind, energy + reach);
  const std::int32_t* bins =
      a.kind[static_cast<int>(kind)].bin_begin +
      (static_cast<std::int64_t>(b.table) * PairKeys4ph::kClasses + pair_class) * (kBins + 1);
  // One step of the key is added on either side for rounding, as in PairKeys4ph::interval.
  const std::int32_t begin = bins[(low > 0 ? low - 1 : 0) >> kBinShift];
  return {begin, bins[min((high + 1) >> kBinShift, kBins - 1u) + 1] - begin};
}

/// Finds the ranges of candidates of all (s', channel, class) of the group, one for each thread.
/// @return  number of candidates of the group, equal for all threads
template <typename V>
__device__ __forceinline__ std::int32_t find_ranges(const ScatterArguments& a,
                                                    const ScatterBlock<V>& b,
                                                    CandidateRanges& ranges,
                                                    typename RangeScan::TempStorage& scan) {
  const Tables4ph& t = a.tables;
  const int pair_class = threadIdx.x % PairKeys4ph::kClasses;
  const int channel = threadIdx.x / PairKeys4ph::kClasses % V::kChannels;
  const int branch = threadIdx.x / PairKeys4ph::kClasses / V::kChannels;
  TableInterval interval;
  if (branch < b.branches) interval = find_interval(a, b, branch, channel, pair_class);

  // number of ranges in the upper bits, number of candidates in the lower ones
  constexpr std::int64_t kOne = std::int64_t{1} << 40;
  std::int64_t before;
  std::int64_t all;
  RangeScan(scan).ExclusiveSum(interval.length > 0 ? kOne + interval.length : 0, before, all);
  const auto n_ranges = static_cast<int>(all / kOne);
  const auto n_candidates = static_cast<std::int32_t>(all % kOne);
  if (interval.length > 0) {
    const auto at = static_cast<int>(before / kOne);
    ranges.first[at] = static_cast<std::int32_t>(before % kOne);
    ranges.offset[at] = interval.begin - ranges.first[at];
    ranges.code[at] = static_cast<std::uint8_t>(branch * 4 + channel);
  }
  if (threadIdx.x == 0) ranges.first[n_ranges] = n_candidates;
  const unsigned active_in_warp =
      __reduce_or_sync(0xffffffffu, interval.length > 0 ? 1u << branch : 0u);
  if (b.lane == 0) ranges.warp_active[b.warp] = active_in_warp;
  if (static_cast<int>(threadIdx.x) < b.branches) {
    const std::int32_t mode1 = b.representative_q1 * b.n_branches + b.first_branch +
                               static_cast<std::int32_t>(threadIdx.x);
    Query& query = ranges.query[threadIdx.x];
    query.energy = t.omega[b.representative_mode0] + V::kSign * t.omega[mode1];
    query.spread = spread_sums(t.p(b.representative_mode0), t.p(mode1));
    if constexpr (V::kShared) {
      const std::int32_t of_lambda = t.exchange->precedence[b.representative_mode0],
                         of_partner = t.exchange->precedence[mode1];
      query.low = min(of_lambda, of_partner);
      query.high = max(of_lambda, of_partner);
    }
  }
  return n_candidates;
}

/// Copies e' of the group's branches to shared memory, conjugated for --.
template <typename V>
__device__ __forceinline__ void load_partner_eigenvectors(const ScatterArguments& a,
                                                          const ScatterBlock<V>& b) {
  const int nb = b.n_branches;
  for (int i = threadIdx.x; i < b.branches * nb; i += kThreads) {
    const Complex<double> e =
        a.tables.eigenvector[static_cast<std::int64_t>(b.q1 * nb + b.first_branch + i / nb) * nb +
                             i % nb];
    b.partner[i] = {e.re, V::kSign * e.im};
  }
}

}  // namespace quasi::thermal::cuda4ph
