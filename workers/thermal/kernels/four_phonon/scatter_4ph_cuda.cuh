#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter_arguments_4ph_cuda.cuh"
#include "workers/thermal/kernels/warp_sums_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// A block finds and sums all processes of one mode λ with one q' = Q − q (kSign = 1: ++ and +-) or
/// q − Q (kSign = −1: --). Each warp takes a part of the candidates: its threads test them,
/// accepted ones are lined up in the warp's queue in the order of the table, and whenever it holds
/// enough for all lanes they are evaluated: few lanes idle in the expensive part, no warp waits for
/// another, and nothing is ever stored outside the block.
///
/// The table is that of the leader of Q's star. Candidates are tested as the leader's: λ and λ'
/// turned to it have the energies and widths that they have here. Found pairs are turned from it.
/// @tparam Real  of A and of what is summed over it for an element
template <int kSign, int kAtoms, Form4ph kForm, Use kUse, typename Real, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) scatter_kernel(const ScatterArguments a) {
  constexpr int kChannels = kSign > 0 ? 2 : 1;
  const Tables4ph& t = a.tables;
  const int nb = kAtoms > 0 ? 3 * kAtoms : t.n_branches;
  const bool symmetric = t.rules.broadening == Broadening::kSymmetric;
  constexpr bool kCollision = kUse == Use::kCollision;
  const SumLayout4ph layout{t.n_temperatures};
  const int n_values = values_of(kUse, t.n_temperatures);
  const int n_sums = sums_in_shared(kUse, kChannels, t.n_temperatures);
  const auto local_row = static_cast<std::int32_t>(blockIdx.x);
  const auto row = static_cast<std::int32_t>(a.first_row) + local_row;
  const auto place = static_cast<std::int32_t>(blockIdx.y);
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  const std::int32_t point = row / nb;
  const Meeting4ph meeting =
      a.meeting[(static_cast<std::int64_t>(place) * t.n_points + point) * 2 + (kSign > 0 ? 0 : 1)];
  const std::int32_t q0 = t.point[point], q1 = meeting.q1;
  const std::int32_t mode0 = q0 * nb + row % nb;
  const int weight = meeting.weight < 0 ? -meeting.weight : meeting.weight;
  const bool both = kUse == Use::kRates && kSign > 0 && meeting.weight < 0;
  const double omega0 = t.omega[mode0];
  const int n_out = kCollision ? 2 : kChannels * n_values;
  double* out = a.partial + (kCollision ? (block * 2 + (kSign > 0 ? 0 : 1)) * 2
                                        : (block * kChannels4ph + (kSign > 0 ? 0 : 2)) * n_values);
  if (weight == 0 || !(omega0 > 0.0)) {
    for (int i = threadIdx.x; i < n_out; i += kThreads) out[i] = 0.0;
    return;
  }

  const double ratio = both ? exchange_ratio_4ph(t, point, q1) : 0.0;
  const std::int32_t table_place = t.star_at(a.first_total + place) - a.first_star;
  const std::int32_t turned_mode0 = meeting.turned_q0 * nb + row % nb;
  const std::int32_t* turn =
      t.total != nullptr ? t.turned + t.total_turn[a.first_total + place] * t.mesh.size() : nullptr;

  constexpr int kPer = processes_of_thread(kForm);
  constexpr int kAtOnce = 32 * kPer;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  extern __shared__ __align__(16) double shared[];
  auto* partner = reinterpret_cast<Complex<double>*>(shared);             // [group][nb]
  auto* pair = reinterpret_cast<Complex<Real>*>(partner + a.group * nb);  // [group][n_pairs][9]
  auto* queues = reinterpret_cast<unsigned char*>(pair) +
                 elements_bytes<Real>(a.group, t.n_pairs);  // [warps] Queue
  Queue queue;
  queue.test = reinterpret_cast<double2*>(queues + warp * queue_bytes(kForm));
  queue.modes = reinterpret_cast<int2*>(queue.test + queue_length(kForm));
  queue.what = reinterpret_cast<std::int32_t*>(queue.modes + queue_length(kForm));
  auto* slot = reinterpret_cast<Complex<double>*>(queues + kWarps * queue_bytes(kForm)) +
               threadIdx.x;  // [3][kPer][threads]
  double* sum = reinterpret_cast<double*>(queues + kWarps * queue_bytes(kForm) +
                                          slot_bytes(kForm));  // [warps][n_sums]
  double* exchanged = sum + kWarps * n_sums;  // [warps][group][kExchanged][n_values]
  const int n_exchanged = exchanged_in_shared(t, kUse, kSign, a.group);
  auto* program = reinterpret_cast<std::uint32_t*>(exchanged + kWarps * n_exchanged);  // [steps]
  for (int i = threadIdx.x; kAtoms > 0 && i < a.walk.n_steps; i += kThreads)
    program[i] = a.walk.program[i];
  // Ranges of candidates, those that have any.
  __shared__ std::int32_t
      range_offset[kThreads];  // place in the table less that among the candidates
  __shared__ std::int32_t range_first[kThreads + 1];  // candidates before the range
  __shared__ std::uint8_t range_what[kThreads];       // as Queue::what
  __shared__ Query query[kGroup];                     // of every s' held
  __shared__ unsigned warp_active[kWarps];
  using Scan = cub::BlockScan<std::int64_t, kThreads>;
  __shared__ typename Scan::TempStorage scan_storage;
  for (int i = threadIdx.x; i < kWarps * n_sums; i += kThreads) sum[i] = 0.0;

  for (int first_branch = 0; first_branch < nb; first_branch += a.group) {
    const int branches = min(a.group, nb - first_branch);
    if (both)
      for (int i = threadIdx.x; i < kWarps * n_exchanged; i += kThreads) exchanged[i] = 0.0;
    double* exchanged_out = a.exchanged + (block * nb + first_branch) * kExchanged * n_values;
    // One interval of the table per (s', channel, class).
    std::int32_t begin = 0, length = 0;
    const int pair_class = threadIdx.x % PairKeys4ph::kClasses;
    const int channel_of_range = threadIdx.x / PairKeys4ph::kClasses % kChannels;
    const int branch_of_range = threadIdx.x / PairKeys4ph::kClasses / kChannels;
    if (branch_of_range < branches) {
      const std::int32_t mode1 = meeting.turned_q1 * nb + first_branch + branch_of_range;
      const double omega1 = t.omega[mode1];
      const auto kind =
          kSign > 0 && channel_of_range == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
      const double energy = t.omega[turned_mode0] + kSign * omega1;
      const double reach = a.keys.reach(t.rules, pair_class, t.p(turned_mode0), t.p(mode1));
      if (omega1 > 0.0 && (kind == PairKind4ph::kDifference || energy > 0.0) &&
          (kSign > 0 || may_precede_4ph(t, omega1, energy + reach))) {
        const std::uint32_t low = a.keys.energy_key(kind, energy - reach);
        const std::uint32_t high = a.keys.energy_key(kind, energy + reach);
        const std::int32_t* bins =
            a.kind[static_cast<int>(kind)].bin_begin +
            (static_cast<std::int64_t>(table_place) * PairKeys4ph::kClasses + pair_class) *
                (kBins + 1);
        // One step of the key for rounding, as PairKeys4ph::interval.
        begin = bins[(low > 0 ? low - 1 : 0) >> kBinShift];
        length = bins[min((high + 1) >> kBinShift, kBins - 1u) + 1] - begin;
      }
    }
    constexpr std::int64_t kOne = std::int64_t{1} << 40;  // ranges above, candidates below
    std::int64_t before;
    std::int64_t all;
    Scan(scan_storage).ExclusiveSum(length > 0 ? kOne + length : 0, before, all);
    const auto n_found = static_cast<int>(all / kOne);
    const auto n_candidates = static_cast<std::int32_t>(all % kOne);
    if (length > 0) {
      const auto at = static_cast<int>(before / kOne);
      range_first[at] = static_cast<std::int32_t>(before % kOne);
      range_offset[at] = begin - range_first[at];
      range_what[at] = static_cast<std::uint8_t>(branch_of_range * 4 + channel_of_range);
    }
    if (threadIdx.x == 0) range_first[n_found] = n_candidates;
    const unsigned of_warp = __reduce_or_sync(0xffffffffu, length > 0 ? 1u << branch_of_range : 0u);
    if (lane == 0) warp_active[warp] = of_warp;
    if (static_cast<int>(threadIdx.x) < branches) {
      const std::int32_t mode1 =
          meeting.turned_q1 * nb + first_branch + static_cast<std::int32_t>(threadIdx.x);
      query[threadIdx.x] = {t.omega[turned_mode0] + kSign * t.omega[mode1],
                            spread_sums(t.p(turned_mode0), t.p(mode1))};
    }
    for (int i = threadIdx.x; i < branches * nb; i += kThreads) {
      const Complex<double> e =
          t.eigenvector[static_cast<std::int64_t>(q1 * nb + first_branch + i / nb) * nb + i % nb];
      partner[i] = {e.re, kSign * e.im};
    }
    __syncthreads();
    if (n_candidates == 0) {  // the same for all threads
      for (int i = threadIdx.x; both && i < branches * kExchanged * n_values; i += kThreads)
        exchanged_out[i] = 0.0;
      continue;
    }
    unsigned active = 0;  // branches s' that have candidates
    for (int w = 0; w < kWarps; ++w) active |= warp_active[w];

    // Step 2 of the plan: A of every s' of the group, one element a thread.
    const Complex<double>* contracted =
        t.contracted + static_cast<std::int64_t>(row) * t.n_triples * 27;
    const auto contract = [&](int from, int element, Complex<double>(&accumulated)[kGroup]) {
      constexpr int kAhead = 3;  // triples whose constants are on their way together
      const int end = t.pair_begin[from + 1];
      for (int triple = t.pair_begin[from]; triple < end; triple += kAhead) {
        Complex<double> c[kAhead][3];
        Complex<double> phase[kAhead];
        const Complex<double>* e[kAhead];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          const int at = min(triple + u, end - 1);
#pragma unroll
          for (int b = 0; b < 3; ++b)
            c[u][b] = load(contracted + 27 * static_cast<std::int64_t>(at) + 9 * b + element % 9);
          phase[u] = load(t.phase + static_cast<std::int64_t>(q1) * t.n_cells + t.triple_cell[at]);
          e[u] = partner + 3 * t.triple_atom[at];
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (triple + u >= end) break;
          phase[u].im *= kSign;
#pragma unroll
          for (int b = 0; b < 3; ++b) {
            const Complex<double> x = fused_multiply(phase[u], c[u][b]);
#pragma unroll
            for (int g = 0; g < kGroup; ++g)
              if ((active >> g & 1u) != 0) fused_add(accumulated[g], e[u][g * nb + b], x);
          }
        }
      }
    };
    if constexpr (kForm == Form4ph::kSwapped) {
      for (int element = threadIdx.x; element < a.walk.n_stops * 9; element += kThreads) {
        const int first = a.walk.stop[element / 9];
        const bool two = a.walk.stop[element / 9 + 1] - first == 2;
        const double side =
            !two && a.walk.atoms[first] % 256 == 1 ? -1.0 : 1.0;  // A_12 alone is conjugated
        const int at = two ? 2 * (element % 9) : element % 9;
        Complex<double> accumulated[kGroup] = {};
        contract(a.walk_order[first], element, accumulated);
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
          if ((active >> g & 1u) != 0)
            pair[(g * t.n_pairs + first) * 9 + at] =
                rounded<Real>(Complex<double>{accumulated[g].re, side * accumulated[g].im});
        if (!two) continue;
#pragma unroll
        for (int g = 0; g < kGroup; ++g) accumulated[g] = {};
        contract(a.walk_order[first + 1], element, accumulated);
#pragma unroll
        for (int g = 0; g < kGroup; ++g) {
          if ((active >> g & 1u) == 0) continue;
          Complex<Real>* to = pair + (g * t.n_pairs + first) * 9 + at;
          const auto one = rounded<double>(to[0]);
          to[0] = rounded<Real>(one + accumulated[g]);
          to[1] = rounded<Real>(one - accumulated[g]);
        }
      }
    } else {
      for (int element = threadIdx.x; element < t.n_pairs * 9; element += kThreads) {
        Complex<double> accumulated[kGroup] = {};
        contract(a.walk_order[element / 9], element, accumulated);
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
          if ((active >> g & 1u) != 0)
            pair[g * t.n_pairs * 9 + element] = rounded<Real>(accumulated[g]);
      }
    }

    __syncthreads();

    const auto add = [&](int slot, double value) {
      value = warp_sum(value);
      if (lane == 0) sum[warp * n_sums + slot] += value;
    };
    const auto kind_of = [](int channel) {
      return static_cast<Channel4ph>(kSign > 0 ? channel : 2);
    };
    /// λ'' and λ''' of an entry of the queue, turned from the leader.
    const auto last_of = [&](int at) {
      const int2 modes = queue.modes[at];
      const double sign = sign_third(kind_of(queue.what[at] % 4));
      const std::int32_t turned_q2 = modes.x / nb, turned_q3 = modes.y / nb;
      const std::int32_t q2 = turn != nullptr ? turn[turned_q2] : turned_q2;
      const std::int32_t q3 = turn != nullptr ? turn[turned_q3] : turned_q3;
      LastTwo last{modes.x + (q2 - turned_q2) * nb, modes.y + (q3 - turned_q3) * nb,
                   a.walk.zone[q2], sign};
      if (kUse == Use::kThinned && sign < 0.0 &&
          last.mode2 > last.mode3) {  // what is drawn is known by this order
        const std::int32_t mode2 = last.mode2;
        last.mode2 = last.mode3;
        last.mode3 = mode2;
        last.q2 = a.walk.zone[q3];
      }
      return last;
    };
    const auto read = [&](int at, const LastTwo& last) {
      InHand h;
      const int what = queue.what[at];
      h.channel = what % 4;
      h.branch = what / 4;
      h.mode1 = q1 * nb + first_branch + h.branch;
      const Channel4ph kind = kind_of(h.channel);
      h.mode2 = last.mode2;
      h.mode3 = last.mode3;
      Process4ph process;
      // What let it into the queue was a sieve: the last bits decide here, as they do on the CPU.
      if (symmetric)
        process = test_window_4ph(
            t.rules, multiplicity_4ph(kind, t.rules.exact_weights, h.mode1, h.mode2, h.mode3),
            queue.test[at].x, queue.test[at].y);
      else
        process = test_candidate_4ph(t, kind, mode0, h.mode1, h.mode2, h.mode3);
      if (kSign < 0) process.multiplicity *= splitting_share_4ph(t, h.mode1, h.mode2, h.mode3);
      if (!(process.multiplicity > 0.0)) return InHand{};
      h.multiplicity = process.multiplicity * weight;
      h.delta = h.multiplicity * delta_4ph_ps(t.rules, process);
      const double2 second = a.energy_number[h.mode2], third = a.energy_number[h.mode3];
      h.number2 = second.y;
      h.number3 = third.y;
      const double omega[4] = {omega0, t.omega[h.mode1], second.x, third.x};
      h.density = h.delta * inverse_omega_product_4ph(t.rules, omega);
      if constexpr (kUse == Use::kThinned)
        h.probability = a.thinning.drawn(t, kind, row, h.delta, mode0, h.mode1, h.mode2, h.mode3);
      if (!kCollision) {
        const ZonePoint zone0 = a.walk.zone[q0];
        const ZonePoint zone1 = a.walk.zone[q1];
        const ZonePoint zone3 = a.walk.zone[h.mode3 / nb];
        h.normal = zone0.x + kSign * zone1.x + sign_third(kind) * last.q2.x == zone3.x &&
                   zone0.y + kSign * zone1.y + sign_third(kind) * last.q2.y == zone3.y &&
                   zone0.z + kSign * zone1.z + sign_third(kind) * last.q2.z == zone3.z;
      }
      return h;
    };
    /// Adds one process a thread.
    const auto add_one = [&](const InHand& in_hand) {
      const auto& [channel, branch, mode1, mode2, mode3, multiplicity, delta, density, probability,
                   squared, normal, number2, number3] = in_hand;
      if constexpr (kCollision) {
        double gamma = 0.0;
        if (channel >= 0) {
          const Channel4ph kind = kind_of(channel);
          gamma = density * a.collision.form.bose(kind, mode0, mode1, mode2, mode3) * squared;
          const double scaled = gamma * a.collision.scale[local_row];
          unsigned long long* m = a.collision.matrix + local_row * t.n_modes();
          const auto units = static_cast<unsigned long long>(__double2ll_rn(scaled));
          atomicAdd(m + mode2, CollisionForm4ph::sign_of_third(kind) > 0 ? units : 0ull - units);
          atomicAdd(m + mode3, units);
        }
        for (int g = 0; g < branches; ++g)
          if (__ballot_sync(0xffffffffu, branch == g) != 0) add(g, branch == g ? gamma : 0.0);
        add(kGroup, gamma);
        add(kGroup + 1, fabs(gamma));
      } else if constexpr (kUse == Use::kThinned) {
        for (int c = 0; c < kChannels; ++c) {
          const bool mine = channel == c;
          if (__ballot_sync(0xffffffffu, mine) == 0) continue;
          add_thinned(t, kind_of(c), mine ? probability : 0.0, mine ? density : 0.0,
                      mine ? delta : 0.0, mine ? multiplicity : 0.0, squared, normal,
                      !(a.thinning.draws > 0.0), mode1, mode2, mode3,
                      [&](int slot, double value) { add(c * n_values + slot, value); });
        }
      }
    };
    /// What add_rates takes from the queue once `settle` has put it there: density and delta for
    /// the test, and in `what` also whether a process is normal and six times its multiplicity.
    constexpr int kNormal = 1 << 8, kSixths = 9;
    const auto settle = [&](int at, const LastTwo& last) {
      const InHand h = read(at, last);
      queue.test[at] = {h.density, h.delta};
      if constexpr (kForm == Form4ph::kSwapped)
        slot[(at % kPer) * kThreads] = {h.number2, h.number3};
      queue.what[at] = h.channel < 0 ? -1
                                     : queue.what[at] | (h.normal ? kNormal : 0) |
                                           static_cast<int>(rint(6.0 * h.multiplicity)) << kSixths;
    };
    /// Adds the settled processes of all lanes by channel, and by s' where it matters: few in a
    /// warp, because the queue keeps the table's order. A lane has those at `at`, none where it is
    /// negative.
    const auto add_rates = [&](const int(&at)[kPer], const double(&squared)[kPer]) {
      int what[kPer];
#pragma unroll
      for (int i = 0; i < kPer; ++i) what[i] = at[i] < 0 ? -1 : queue.what[at[i]];
      const auto key_of = [&](int w) { return both ? w % kNormal : w % 4; };
      for (;;) {
        int next = -1;
#pragma unroll
        for (int i = kPer - 1; i >= 0; --i)
          if (what[i] >= 0) next = key_of(what[i]);
        const unsigned left = __ballot_sync(0xffffffffu, next >= 0);
        if (left == 0) break;
        const int current = __shfl_sync(0xffffffffu, next, __ffs(static_cast<int>(left)) - 1);
        const int c = current % 4;
        const Channel4ph kind = kind_of(c);
        double* own_sum = sum + warp * n_sums + c * layout.size();
        double* other_sum =
            exchanged + warp * n_exchanged + (current / 4 * kExchanged + c) * layout.size();
        int mine[kPer];  // what[i] of those that are added now, else −1
        int here = 0;
        int sixths = 0;
#pragma unroll
        for (int i = 0; i < kPer; ++i) {
          mine[i] = what[i] >= 0 && key_of(what[i]) == current ? what[i] : -1;
          if (mine[i] >= 0) {
            sixths += what[i] >> kSixths;
            what[i] = -1;
          }
          here += __popc(__ballot_sync(0xffffffffu, mine[i] >= 0));
        }
        for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
          double own[4] = {}, other[4] = {};
          const double* n = t.occupation + temperature * t.n_modes();
#pragma unroll
          for (int i = 0; i < kPer; ++i) {
            if (mine[i] < 0) continue;
            const int2 modes = queue.modes[at[i]];
            const double density = queue.test[at[i]].x, delta = queue.test[at[i]].y;
            const bool normal = (mine[i] & kNormal) != 0;
            const bool read_before = kForm == Form4ph::kSwapped && temperature == 0;
            const Complex<double> numbers =
                read_before ? slot[i * kThreads] : Complex<double>{n[modes.x], n[modes.y]};
            const double n2 = numbers.re, n3 = numbers.im;
            const double w =
                density *
                bose_factor_4ph(kind, n[q1 * nb + first_branch + mine[i] % kNormal / 4], n2, n3);
            own[0] += normal ? w * squared[i] : 0.0;
            own[1] += normal ? 0.0 : w * squared[i];
            own[2] += w;
            own[3] += delta;
            if (both) {
              const double w1 = ratio * density * bose_factor_4ph(kind, n[mode0], n2, n3);
              other[0] += normal ? w1 * squared[i] : 0.0;
              other[1] += normal ? 0.0 : w1 * squared[i];
              other[2] += w1;
              other[3] += ratio * delta;
            }
          }
          const int i = both ? lane / 4 % 4 : lane / 8;
          const int to = i == 0             ? layout.normal(temperature)
                         : i == 1           ? layout.umklapp(temperature)
                         : i == 2           ? layout.weighted_phase_space(temperature)
                         : temperature == 0 ? layout.phase_space()
                                            : -1;
          const double value =
              both ? warp_sums_of_eight(lane, own, other) : warp_sums_of_four(lane, own);
          if (lane % (both ? 4 : 8) == 0 && to >= 0)
            (both && lane >= 16 ? other_sum : own_sum)[to] += value;
        }
        const int six = __reduce_add_sync(0xffffffffu, sixths);
        if (lane == 0) {
          own_sum[layout.six_count()] += six;
          own_sum[layout.evaluations()] += here;
          if (both) other_sum[layout.six_count()] += rint(ratio * six);
        }
      }
    };
    /// Evaluates and adds the first `count` of the queue, kPer a lane.
    const auto evaluate = [&](int count) {
      const int first = kPer * lane;
      const auto* of = pair + queue.what[first < count ? first : 0] / 4 * t.n_pairs * 9;
      if constexpr (kUse == Use::kRates) {
        int at[kPer];
        double squared[kPer];
#pragma unroll
        for (int i = 0; i < kPer; ++i)
          at[i] = first + i < count && queue.what[first + i] >= 0 ? first + i : -1;
        {
          LastTwo last[kPer];
#pragma unroll
          for (int i = 0; i < kPer;
               ++i) {  // neighbours share λ'; where there is none, the first stands in
            last[i] = last_of(at[i] >= 0 ? at[i] : first < count ? first : 0);
          }
          __syncwarp();
#pragma unroll
          for (int i = 0; i < kPer; ++i)
            if (at[i] >= 0) queue.modes[at[i]] = {last[i].mode2, last[i].mode3};
          if constexpr (kForm == Form4ph::kSwapped)
            squared_elements_swapped<kPer, kThreads, Real>(a.walk, program, of, last, slot,
                                                           squared);
          else
            squared[0] = squared_element<kAtoms, Real>(t, a.walk, program, of, last[0].mode2,
                                                       last[0].mode3, last[0].q2, last[0].sign);
#pragma unroll 1
          for (int i = 0; i < kPer; ++i)  // long code, that the caches hold once
            if (first + i < count && queue.what[first + i] >= 0) {
              const int2 modes = queue.modes[first + i];
              settle(first + i, {modes.x, modes.y, a.walk.zone[modes.x / nb], 0.0});
            }
        }
        __syncwarp();
        add_rates(at, squared);
      } else {
#pragma unroll
        for (int i = 0; i < kPer; ++i) {
          InHand hand;
          if (first + i < count && queue.what[first + i] >= 0) {
            const LastTwo last[1] = {last_of(first + i)};
            hand = read(first + i, last[0]);
            if (hand.channel >= 0 && !(kUse == Use::kThinned && !(hand.probability > 0.0))) {
              if constexpr (kForm == Form4ph::kSwapped) {
                double squared[1];
                squared_elements_swapped<1, kThreads, Real>(a.walk, program, of, last, slot,
                                                            squared);
                hand.squared = squared[0];
              } else {
                hand.squared = squared_element<kAtoms, Real>(
                    t, a.walk, program, of, last[0].mode2, last[0].mode3, last[0].q2, last[0].sign);
              }
            }
          }
          __syncwarp();
          add_one(hand);
        }
      }
    };

    // Each warp takes every fourth of equal stripes: long enough to stay with one λ', some for each
    // where there are many.
    constexpr std::int32_t kStripe = 1024;
    const std::int32_t turns = (n_candidates + kWarps * kStripe - 1) / (kWarps * kStripe);
    const std::int32_t stripe = (n_candidates + kThreads * turns - 1) / (kThreads * turns) * 32;
    std::int32_t next = min(warp * stripe, n_candidates);
    std::int32_t stripe_end = min(next + stripe, n_candidates);
    int low = 0;  // the last range that starts at or before the next candidate
    const WindowSieve4ph sieve = WindowSieve4ph::of(t.rules);
    struct Found {
      double2 test;
      int2 modes;
      int what;
    };
    /// Tests a candidate.
    const auto test = [&](std::int32_t candidate, Found& found) {
      if (candidate >= stripe_end) return false;
      int range = low;
      while (range_first[range + 1] <= candidate) ++range;
      found.what = range_what[range];
      const Channel4ph kind = kind_of(found.what % 4);
      const Query& of = query[found.what / 4];
      const PairColumns& columns = a.kind[sign_third(kind) > 0 ? 0 : 1].columns;
      const std::int64_t at = table_place * a.n_pairs_table + (range_offset[range] + candidate);
      const PairEnergy pair_energy = columns.energy[at];
      const PairModes modes = columns.modes[at];
      double width = pair_energy.square;
      if (symmetric) {
        const PairSpread spread = columns.spread[at];
        width = symmetric_width_squared_4ph(of.spread, {width, {spread.x, spread.y, modes.z}});
      }
      found.test = {of.energy - pair_energy.energy, width};
      found.modes = {modes.mode2, modes.mode3};
      const std::int32_t mode1 = meeting.turned_q1 * nb + first_branch + found.what / 4;
      if (!sieve.passes(found.test.x, width) ||
          !multiplicity_may_be(kind, t.rules.exact_weights, mode1, modes.mode2))
        return false;
      if (kSign < 0 && !(splitting_share_4ph(t, mode1, modes.mode2, modes.mode3) > 0.0))
        return false;
      if (!symmetric || kind != Channel4ph::kRedistribution) return true;
      const auto of_point = [&](std::int32_t mode, std::int32_t q) {
        return static_cast<std::uint32_t>(mode - q * nb) < static_cast<std::uint32_t>(nb);
      };
      if (!of_point(modes.mode2, meeting.turned_q0) && !of_point(modes.mode2, meeting.turned_q1))
        return true;
      // Only now can the last phonons be the first.
      return !exchanges_nothing(t.set[turned_mode0], t.set[mode1], t.set[modes.mode2],
                                t.set[modes.mode3]);
    };
    int queued = 0;   // these are the same in all lanes
    int newest = -1;  // s' of the queue's end
    const auto line_up = [&](bool accepted, const Found& found) {
      for (unsigned left = __ballot_sync(0xffffffffu, accepted); left != 0;) {
        const int branch =
            __shfl_sync(0xffffffffu, found.what, __ffs(static_cast<int>(left)) - 1) / 4;
        const unsigned these = __ballot_sync(0xffffffffu, accepted && found.what / 4 == branch);
        left &= ~these;
        if (kPer == 2 && branch != newest && queued % 2 == 1) {
          if (lane == 0) queue.what[queued] = -1;
          ++queued;
        }
        newest = branch;
        if ((these >> lane & 1u) != 0) {
          const int at = queued + __popc(these & ((1u << lane) - 1u));
          queue.test[at] = found.test;
          queue.modes[at] = found.modes;
          queue.what[at] = found.what;
        }
        queued += __popc(these);
      }
    };
    for (;;) {
      while (queued < kAtOnce && next < n_candidates) {
        while (range_first[low + 1] <= next) ++low;
        Found found[kPer];
        bool accepted[kPer];
#pragma unroll
        for (int i = 0; i < kPer; ++i) accepted[i] = test(next + 32 * i + lane, found[i]);
#pragma unroll
        for (int i = 0; i < kPer; ++i) line_up(accepted[i], found[i]);
        next += kAtOnce;
        if (next >= stripe_end) {
          next = stripe_end + (kWarps - 1) * stripe;
          stripe_end = min(next + stripe, n_candidates);
        }
      }
      if (queued == 0) break;
      __syncwarp();
      evaluate(min(queued, kAtOnce));
      queued = max(0, queued - kAtOnce);
      for (int i = lane; i - lane < queued; i += 32) {  // the same number of turns for all lanes
        if (i < queued) {
          queue.test[i] = queue.test[kAtOnce + i];
          queue.modes[i] = queue.modes[kAtOnce + i];
          queue.what[i] = queue.what[kAtOnce + i];
        }
        __syncwarp();
      }
    }
    __syncthreads();
    if (both)
      for (int i = threadIdx.x; i < branches * kExchanged * n_values; i += kThreads) {
        double value = 0.0;
        for (int w = 0; w < kWarps; ++w) value += exchanged[w * n_exchanged + i];
        exchanged_out[i] = value;
      }
    if (both) __syncthreads();
    if constexpr (kCollision) {  // λ' of the group: −Γ where destroyed with λ, +Γ where created
      if (static_cast<int>(threadIdx.x) < branches) {
        double gamma = 0.0;
        for (int w = 0; w < kWarps; ++w) {
          gamma += sum[w * n_sums + threadIdx.x];
          sum[w * n_sums + threadIdx.x] = 0.0;
        }
        const long long units = __double2ll_rn(-kSign * gamma * a.collision.scale[local_row]);
        atomicAdd(
            a.collision.matrix + local_row * t.n_modes() + q1 * nb + first_branch + threadIdx.x,
            static_cast<unsigned long long>(units));
      }
      __syncthreads();
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_out; i += kThreads) {
    double value = 0.0;
    for (int w = 0; w < kWarps; ++w) value += sum[w * n_sums + (kCollision ? kGroup : 0) + i];
    out[i] = value;
  }
}

}  // namespace quasi::thermal::cuda4ph
