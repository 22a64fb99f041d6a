#pragma once

#include "workers/thermal/kernels/four_phonon/scatter/scatter_block_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Adds one process of each lane to the row of the collision operator (CollisionForm4ph).
/// See docs/theory/thermal.md 7.1 for the equations.
template <typename V>
__device__ __forceinline__ void add_collision(const ScatterArguments& a, const ScatterBlock<V>& b,
                                              const ProcessTerm& p) {
  double gamma = 0.0;
  if (p.channel >= 0) {
    const Channel4ph channel = V::channel(p.channel);
    gamma =
        p.density * a.collision.form.bose(channel, b.mode0, p.mode1, p.mode2, p.mode3) * p.squared;
    const double scaled = gamma * a.collision.scale[b.local_row];
    unsigned long long* m = a.collision.matrix + b.local_row * a.tables.n_modes();
    const auto units = static_cast<unsigned long long>(__double2ll_rn(scaled));
    atomicAdd(m + p.mode2, CollisionForm4ph::sign_of_third(channel) > 0 ? units : 0ull - units);
    atomicAdd(m + p.mode3, units);
  }
  for (int g = 0; g < b.branches; ++g)
    if (__ballot_sync(0xffffffffu, p.branch == g) != 0) b.add(g, p.branch == g ? gamma : 0.0);
  b.add(kGroup, gamma);
  b.add(kGroup + 1, fabs(gamma));
}

/// Adds one process of each lane to the sums of a sample (ThinnedLayout4ph).
template <typename V>
__device__ __forceinline__ void add_sample(const ScatterArguments& a, const ScatterBlock<V>& b,
                                           const ProcessTerm& p) {
  for (int c = 0; c < V::kChannels; ++c) {
    const bool added = p.channel == c;
    if (__ballot_sync(0xffffffffu, added) == 0) continue;
    add_thinned(a.tables,
                {.channel = V::channel(c),
                 .mode1 = p.mode1,
                 .mode2 = p.mode2,
                 .mode3 = p.mode3,
                 .multiplicity = added ? p.multiplicity : 0.0,
                 .delta_ps = added ? p.delta : 0.0,
                 .density = added ? p.density : 0.0,
                 .normal = p.normal,
                 .probability = added ? p.probability : 0.0,
                 .squared = p.squared,
                 .weights_only = !(a.thinning.draws > 0.0)},
                [&](int index, double value) { b.add(c * b.n_values + index, value); });
  }
}

/// Weighed processes of a lane that add_rates takes together. They belong to one channel, and to
/// one s' if λ' has sums too.
template <typename V>
struct WeighedProcesses {
  Channel4ph channel;       ///< of all that are taken
  int branch;               ///< s' within the group of all that are taken if λ' has sums too
  int at[V::kPerThread];    ///< entry of the queue; −1: none
  int code[V::kPerThread];  ///< Queue::code; −1: none
};

/// Terms of the sums of λ and of λ' at one temperature: normal and Umklapp part of Σ m W|V|², Σ m
/// W, Σ m δ (SumLayout4ph).
struct RateTerms {
  double own[4] = {}, other[4] = {};
};

/// Adds the terms of the processes of one lane.
template <typename V>
__device__ __forceinline__ void sum_of_lane(const ScatterArguments& a, const ScatterBlock<V>& b,
                                            int temperature, const WeighedProcesses<V>& taken,
                                            const double (&squared)[V::kPerThread],
                                            RateTerms& terms) {
  const Tables4ph& t = a.tables;
  const double* n = t.occupation + temperature * t.n_modes();
  const double* partners = n + b.q1 * b.n_branches + b.first_branch;
  const double n0 = b.both ? n[b.mode0] : 0.0, n1_of_all = b.both ? partners[taken.branch] : 0.0;
#pragma unroll
  for (int i = 0; i < V::kPerThread; ++i) {
    if (taken.code[i] < 0) continue;
    const int2 modes = b.queue.modes[taken.at[i]];
    const double density = b.queue.test[taken.at[i]].x, delta = b.queue.test[taken.at[i]].y;
    const bool normal = (taken.code[i] & kNormalBit) != 0;
    const bool read_before = V::kForm == Form4ph::kSwapped && temperature == 0;
    const Complex<double> numbers =
        read_before ? b.slot[i * kThreads] : Complex<double>{n[modes.x], n[modes.y]};
    const double n2 = numbers.re, n3 = numbers.im;
    const double n1 = b.both ? n1_of_all : partners[taken.code[i] % kNormalBit / 4];
    const double w = density * bose_factor_4ph(taken.channel, n1, n2, n3);
    terms.own[0] += normal ? w * squared[i] : 0.0;
    terms.own[1] += normal ? 0.0 : w * squared[i];
    terms.own[2] += w;
    terms.own[3] += delta;
    if (b.both) {
      const double w1 = b.ratio * density * bose_factor_4ph(taken.channel, n0, n2, n3);
      terms.other[0] += normal ? w1 * squared[i] : 0.0;
      terms.other[1] += normal ? 0.0 : w1 * squared[i];
      terms.other[2] += w1;
      terms.other[3] += b.ratio * delta;
    }
  }
}

/// Sums the terms of all lanes and adds them to the warp's sums of λ, and to those of λ' if `both`.
template <typename V>
__device__ __forceinline__ void sum_of_warp(const ScatterBlock<V>& b, const SumLayout4ph& layout,
                                            int temperature, const RateTerms& terms,
                                            double* own_sum, double* other_sum) {
  const int i = b.both ? b.lane / 4 % 4 : b.lane / 8;
  const int to = i == 0             ? layout.normal(temperature)
                 : i == 1           ? layout.umklapp(temperature)
                 : i == 2           ? layout.weighted_phase_space(temperature)
                 : temperature == 0 ? layout.phase_space()
                                    : -1;
  const double value = b.both ? warp_sums_of_eight(b.lane, terms.own, terms.other)
                              : warp_sums_of_four(b.lane, terms.own);
  if (b.lane % (b.both ? 4 : 8) == 0 && to >= 0)
    (b.both && b.lane >= 16 ? other_sum : own_sum)[to] += value;
}

/// Moves the remaining processes with the code `key` (see key_of) out of `left`. @return  their
/// number in the warp; `parts` gets kParts times their multiplicity in the lane
template <typename V>
__device__ __forceinline__ int take_processes(int key, bool both, WeighedProcesses<V>& left,
                                              WeighedProcesses<V>& taken, int& parts) {
  int count = 0;
#pragma unroll
  for (int i = 0; i < V::kPerThread; ++i) {
    const int code = left.code[i];
    taken.at[i] = left.at[i];
    taken.code[i] = code >= 0 && (both ? code % kNormalBit : code % 4) == key ? code : -1;
    if (taken.code[i] >= 0) {
      parts += code >> kPartsShift;
      left.code[i] = -1;
    }
    count += __popc(__ballot_sync(0xffffffffu, taken.code[i] >= 0));
  }
  return count;
}

/// Adds the weighed processes of all lanes to the sums of the rates, one channel at a time, and one
/// s' at a time if λ' has sums too. A warp has few of either, because the queue keeps the order of
/// the table. @param at  entries of the queue of the lane; −1: none
template <typename V>
__device__ __forceinline__ void add_rates(const ScatterArguments& a, const ScatterBlock<V>& b,
                                          const int (&at)[V::kPerThread],
                                          const double (&squared)[V::kPerThread]) {
  const SumLayout4ph layout{a.tables.n_temperatures};
  WeighedProcesses<V> left;
#pragma unroll
  for (int i = 0; i < V::kPerThread; ++i) {
    left.at[i] = at[i];
    left.code[i] = at[i] < 0 ? -1 : b.queue.code[at[i]];
  }
  for (;;) {
    int next = -1;
#pragma unroll
    for (int i = V::kPerThread - 1; i >= 0; --i)
      if (left.code[i] >= 0) next = b.both ? left.code[i] % kNormalBit : left.code[i] % 4;
    const unsigned lanes_left = __ballot_sync(0xffffffffu, next >= 0);
    if (lanes_left == 0) break;
    const int key = __shfl_sync(0xffffffffu, next, __ffs(static_cast<int>(lanes_left)) - 1);
    const int c = key % 4;
    double* own_sum = b.sum + b.warp * b.n_sums + c * layout.size();
    double* other_sum =
        b.exchanged + b.warp * b.n_exchanged + (key / 4 * kExchanged + c) * layout.size();
    WeighedProcesses<V> taken;
    taken.channel = V::channel(c);
    taken.branch = key / 4;
    int parts = 0;
    const int count = take_processes(key, b.both, left, taken, parts);
    for (int temperature = 0; temperature < a.tables.n_temperatures; ++temperature) {
      RateTerms terms;
      sum_of_lane(a, b, temperature, taken, squared, terms);
      sum_of_warp(b, layout, temperature, terms, own_sum, other_sum);
    }
    const int all_parts = __reduce_add_sync(0xffffffffu, parts);
    if (b.lane == 0) {
      // Twelfths are not rounded: the sum over all total momenta is a number of sixths.
      const double six = V::kShared ? 0.5 * all_parts : all_parts;
      own_sum[layout.six_count()] += six;
      own_sum[layout.evaluations()] += count;
      if (b.both) other_sum[layout.six_count()] += b.ratio * six;
    }
  }
}

}  // namespace quasi::thermal::cuda4ph
