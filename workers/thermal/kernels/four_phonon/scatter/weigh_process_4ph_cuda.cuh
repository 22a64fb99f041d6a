#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/scatter_block_4ph_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Returns λ'' and λ''' of an entry of the queue, rotated from the representative's frame to that
/// of Q. See docs/theory/thermal.md 7.2 for the equations.
template <typename V>
__device__ __forceinline__ LastTwo last_two_of(const ScatterArguments& a, const ScatterBlock<V>& b,
                                               int at) {
  const int nb = b.n_branches;
  const int2 modes = b.queue.modes[at];
  const double sign = sign_third(V::channel(b.queue.code[at] % 4));
  const std::int32_t from_q2 = modes.x / nb, from_q3 = modes.y / nb;
  const std::int32_t q2 = b.rotated != nullptr ? b.rotated[from_q2] : from_q2;
  const std::int32_t q3 = b.rotated != nullptr ? b.rotated[from_q3] : from_q3;
  LastTwo last{modes.x + (q2 - from_q2) * nb, modes.y + (q3 - from_q3) * nb, a.path.zone[q2], sign};
  // The random numbers of a draw are keyed by the pair in rising order.
  if (V::kUse == Use::kThinned && sign < 0.0 && last.mode2 > last.mode3) {
    const std::int32_t mode2 = last.mode2;
    last.mode2 = last.mode3;
    last.mode3 = mode2;
    last.q2 = a.path.zone[q3];
  }
  return last;
}

/// Returns true if the process conserves the sum of the wave vectors in the first zone, without a
/// reciprocal vector.
template <typename V>
__device__ __forceinline__ bool is_normal(const ScatterArguments& a, const ScatterBlock<V>& b,
                                          Channel4ph channel, ZonePoint zone2, std::int32_t mode3) {
  const ZonePoint zone0 = a.path.zone[b.q0];
  const ZonePoint zone1 = a.path.zone[b.q1];
  const ZonePoint zone3 = a.path.zone[mode3 / b.n_branches];
  return zone0.x + V::kSign * zone1.x + sign_third(channel) * zone2.x == zone3.x &&
         zone0.y + V::kSign * zone1.y + sign_third(channel) * zone2.y == zone3.y &&
         zone0.z + V::kSign * zone1.z + sign_third(channel) * zone2.z == zone3.z;
}

/// Tests an entry of the queue exactly, as the CPU does, and weighs it. @return  channel −1 if it
/// is not a process
template <typename V>
__device__ __forceinline__ ProcessTerm weigh_process(const ScatterArguments& a,
                                                     const ScatterBlock<V>& b, int at,
                                                     const LastTwo& last) {
  const Tables4ph& t = a.tables;
  ProcessTerm p;
  const int code = b.queue.code[at];
  p.channel = code % 4;
  p.branch = code % kNormalBit / 4;
  p.mode1 = b.q1 * b.n_branches + b.first_branch + p.branch;
  const Channel4ph channel = V::channel(p.channel);
  p.mode2 = last.mode2;
  p.mode3 = last.mode3;
  Process4ph process;
  if (t.rules.broadening == Broadening::kSymmetric)
    process = test_window_4ph(
        t.rules, multiplicity_4ph(channel, t.rules.exact_weights, p.mode1, p.mode2, p.mode3),
        b.queue.test[at].x, b.queue.test[at].y);
  else
    process = test_candidate_4ph(t, channel, b.mode0, p.mode1, p.mode2, p.mode3);
  if (V::kShared) process.multiplicity *= share_of_number(code >> kShareShift);
  if (!(process.multiplicity > 0.0)) return ProcessTerm{};
  p.multiplicity = process.multiplicity * b.weight;
  p.delta = p.multiplicity *
            (gaussian_delta_ps(process.mismatch_rad_ps, process.sigma_rad_ps) * a.per_window_norm);
  const double2 second = a.energy_number[p.mode2], third = a.energy_number[p.mode3];
  p.number2 = second.y;
  p.number3 = third.y;
  p.density = p.delta * (b.per_omega0 * a.energy_number[p.mode1].x) * (second.x * third.x);
  if constexpr (V::kUse == Use::kThinned)
    p.probability =
        a.thinning.draw(t, b.row, {channel, b.mode0, p.mode1, p.mode2, p.mode3}, p.delta);
  if (!V::kCollision) p.normal = is_normal(a, b, channel, last.q2, p.mode3);
  return p;
}

/// Replaces an entry of the queue by its weights for add_rates: density and delta in `test`; in
/// `code` also the flag of a normal process and kParts times its multiplicity.
template <typename V>
__device__ __forceinline__ void store_weights(const ScatterArguments& a, const ScatterBlock<V>& b,
                                              int at, const LastTwo& last) {
  const ProcessTerm p = weigh_process(a, b, at, last);
  b.queue.test[at] = {p.density, p.delta};
  if constexpr (V::kForm == Form4ph::kSwapped)
    b.slot[(at % V::kPerThread) * kThreads] = {p.number2, p.number3};
  b.queue.code[at] = p.channel < 0
                         ? -1
                         : b.queue.code[at] % kNormalBit | (p.normal ? kNormalBit : 0) |
                               static_cast<int>(rint(V::kParts * p.multiplicity)) << kPartsShift;
}

}  // namespace quasi::thermal::cuda4ph
