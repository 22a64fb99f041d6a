#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/scatter_block_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Position of a warp among the candidates of the group, and the state of its queue. All lanes of
/// the warp hold equal values.
///
/// The candidates are cut into equal stripes, and each warp takes every fourth stripe. A stripe is
/// long enough to stay with one λ', and each warp gets several if there are many candidates.
struct CandidateCursor {
  std::int32_t n_candidates;
  std::int32_t stripe;      ///< candidates of a stripe
  std::int32_t next;        ///< first candidate that is not yet tested
  std::int32_t stripe_end;  ///< end of the stripe at work
  int range = 0;            ///< last range that begins at or before `next`
  WindowSieve4ph sieve;
  int queued = 0;          ///< entries of the queue
  int newest_branch = -1;  ///< s' of the last entry

  __device__ __forceinline__ CandidateCursor(const Rules4ph& rules, std::int32_t candidates,
                                             int warp)
      : n_candidates(candidates) {
    constexpr std::int32_t kStripe = 1024;
    const std::int32_t rounds = (n_candidates + kWarps * kStripe - 1) / (kWarps * kStripe);
    stripe = (n_candidates + kThreads * rounds - 1) / (kThreads * rounds) * 32;
    next = min(warp * stripe, n_candidates);
    stripe_end = min(next + stripe, n_candidates);
    sieve = WindowSieve4ph::of(rules);
  }
  __device__ __forceinline__ void advance(std::int32_t tested) {
    next += tested;
    if (next >= stripe_end) {
      next = stripe_end + (kWarps - 1) * stripe;
      stripe_end = min(next + stripe, n_candidates);
    }
  }
};

/// One candidate in the form of the queue.
struct Candidate {
  double2 test;
  int2 modes;
  int code;
};

/// Returns true if λ'' and λ''' are λ and λ' again, so that the process exchanges nothing
/// (docs/theory/thermal.md 7.2). The sets are read only if two points coincide.
template <typename V>
__device__ __forceinline__ bool is_trivial_redistribution(const Tables4ph& t,
                                                          const ScatterBlock<V>& b,
                                                          std::int32_t mode1, std::int32_t mode2,
                                                          std::int32_t mode3) {
  const int nb = b.n_branches;
  const auto is_at = [&](std::int32_t mode, std::int32_t q) {
    return static_cast<std::uint32_t>(mode - q * nb) < static_cast<std::uint32_t>(nb);
  };
  if (!is_at(mode2, b.representative_q0) && !is_at(mode2, b.representative_q1)) return false;
  return exchanges_nothing(t.set[b.representative_mode0], t.set[mode1], t.set[mode2], t.set[mode3]);
}

/// Returns the number of quartet_share_4ph() for share_of_number(); 0 if the process is visited
/// from another pair.
__device__ __forceinline__ int share_number(Channel4ph channel, const Query& query,
                                            PairPrecedence pair) {
  if (channel == Channel4ph::kRecombination) {
    if (pair.second < query.high) return 0;
    return 1 + static_cast<int>(pair.second == query.high) +
           static_cast<int>(pair.second == query.low);
  }
  const std::int32_t low = min(pair.second, pair.third), high = max(pair.second, pair.third);
  if (low != query.low) return low > query.low ? 2 : 0;
  return high < query.high ? 0 : high > query.high ? 2 : 4;
}

/// Tests a candidate with a sieve that lets every process pass, and few others.
template <typename V>
__device__ __forceinline__ bool sieve(const ScatterArguments& a, const ScatterBlock<V>& b,
                                      const CandidateRanges& ranges, const CandidateCursor& cursor,
                                      std::int32_t number, Candidate& candidate) {
  const Tables4ph& t = a.tables;
  const bool symmetric = t.rules.broadening == Broadening::kSymmetric;
  if (number >= cursor.stripe_end) return false;
  int range = cursor.range;
  while (ranges.first[range + 1] <= number) ++range;
  candidate.code = ranges.code[range];
  const Channel4ph channel = V::channel(candidate.code % 4);
  const Query& query = ranges.query[candidate.code / 4];
  const PairColumns& columns = a.kind[sign_third(channel) > 0 ? 0 : 1].columns;
  const std::int64_t at = b.table * a.n_pairs_table + (ranges.offset[range] + number);
  const PairEnergy pair_energy = columns.energy[at];
  const PairModes modes = columns.modes[at];
  double width = pair_energy.square;
  if (symmetric) {
    const PairSpread spread = columns.spread[at];
    width = symmetric_width_squared_4ph(query.spread, {width, {spread.x, spread.y, modes.z}});
  }
  candidate.test = {query.energy - pair_energy.energy, width};
  candidate.modes = {modes.mode2, modes.mode3};
  const std::int32_t mode1 =
      b.representative_q1 * b.n_branches + b.first_branch + candidate.code / 4;
  if (!cursor.sieve.passes(candidate.test.x, width) ||
      !multiplicity_may_be(channel, t.rules.exact_weights, mode1, modes.mode2))
    return false;
  if constexpr (V::kShared) {
    const int share = share_number(channel, query, columns.precedence[at]);
    if (share == 0) return false;
    candidate.code |= share << kShareShift;
  }
  if (!symmetric || channel != Channel4ph::kRedistribution) return true;
  return !is_trivial_redistribution(t, b, mode1, modes.mode2, modes.mode3);
}

/// Appends the accepted candidates of the warp to its queue, in the order of the table. Processes
/// that a thread evaluates together share λ', so a change of s' begins at an even entry.
template <typename V>
__device__ __forceinline__ void enqueue(const ScatterBlock<V>& b, bool accepted,
                                        const Candidate& candidate, CandidateCursor& cursor) {
  const Queue& queue = b.queue;
  for (unsigned left = __ballot_sync(0xffffffffu, accepted); left != 0;) {
    const int branch = __shfl_sync(0xffffffffu, candidate.code, __ffs(static_cast<int>(left)) - 1) %
                       kNormalBit / 4;
    const unsigned same_branch =
        __ballot_sync(0xffffffffu, accepted && candidate.code % kNormalBit / 4 == branch);
    left &= ~same_branch;
    if (V::kPerThread == 2 && branch != cursor.newest_branch && cursor.queued % 2 == 1) {
      if (b.lane == 0) queue.code[cursor.queued] = -1;
      ++cursor.queued;
    }
    cursor.newest_branch = branch;
    if ((same_branch >> b.lane & 1u) != 0) {
      const int at = cursor.queued + __popc(same_branch & ((1u << b.lane) - 1u));
      queue.test[at] = candidate.test;
      queue.modes[at] = candidate.modes;
      queue.code[at] = candidate.code;
    }
    cursor.queued += __popc(same_branch);
  }
}

/// Tests candidates until the queue has work for all lanes or no candidate is left.
template <typename V>
__device__ __forceinline__ void fill_queue(const ScatterArguments& a, const ScatterBlock<V>& b,
                                           const CandidateRanges& ranges, CandidateCursor& cursor) {
  constexpr int kPerThread = V::kPerThread;
  while (cursor.queued < V::kPerWarp && cursor.next < cursor.n_candidates) {
    while (ranges.first[cursor.range + 1] <= cursor.next) ++cursor.range;
    Candidate candidate[kPerThread];
    bool accepted[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i)
      accepted[i] = sieve(a, b, ranges, cursor, cursor.next + 32 * i + b.lane, candidate[i]);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) enqueue(b, accepted[i], candidate[i], cursor);
    cursor.advance(V::kPerWarp);
  }
}

/// Removes the evaluated entries and moves the others to the front.
template <typename V>
__device__ __forceinline__ void drop_evaluated(const ScatterBlock<V>& b, CandidateCursor& cursor) {
  const Queue& queue = b.queue;
  cursor.queued = max(0, cursor.queued - V::kPerWarp);
  for (int i = b.lane; i - b.lane < cursor.queued; i += 32) {  // all lanes repeat equally often
    if (i < cursor.queued) {
      queue.test[i] = queue.test[V::kPerWarp + i];
      queue.modes[i] = queue.modes[V::kPerWarp + i];
      queue.code[i] = queue.code[V::kPerWarp + i];
    }
    __syncwarp();
  }
}

}  // namespace quasi::thermal::cuda4ph
