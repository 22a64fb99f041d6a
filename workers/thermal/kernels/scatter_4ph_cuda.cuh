#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/thermal/kernels/collision_operator_4ph_cuda.cuh"
#include "workers/thermal/kernels/evaluate_4ph_cuda.cuh"
#include "workers/thermal/kernels/exchange_4ph.hpp"
#include "workers/thermal/kernels/pair_tables_4ph_cuda.cuh"
#include "workers/thermal/kernels/sample_4ph.hpp"
#include "workers/thermal/kernels/warp_sums_cuda.cuh"

namespace quasi::thermal::cuda4ph {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kGroup = 6;          ///< branches s' whose A a block holds at once, at most

/// What is made of the processes that are found.
enum class Use {
  kRates,      ///< SumLayout4ph of each row and channel
  kCollision,  ///< rows of the collision operator
  kThinned,    ///< ThinnedLayout4ph of each row and channel; only drawn processes are evaluated
};

/// Processes that a thread evaluates at once, as many as the candidates that it tests at once, and the length of the
/// queue between.
constexpr int processes_of_thread(Form4ph form) { return form == Form4ph::kSwapped ? 2 : 1; }
constexpr int queue_length(Form4ph form) { return 2 * processes_of_thread(form) * kThreads; }

struct ScatterArguments {
  Tables4ph tables;
  PairKeys4ph keys;
  Walk4ph walk;
  const std::int32_t* walk_order;  ///< [n_pairs] the plan's number of each pair in walking order
  PairTables kind[2];              ///< by PairKind4ph
  std::int64_t n_pairs_table;
  std::int32_t first_total;        ///< place in the order of total momenta
  std::int32_t first_star;         ///< of the tables
  int group;                       ///< s' held at once, ≤ kGroup
  std::int64_t first_row;          ///< rows of this launch, [first, first + n)
  std::int64_t n_rows;
  /// [places][n_rows][channels][layout]; for the collision operator [places][n_rows][2 signs][2]: the sums of
  /// Γ and of |Γ|.
  double* partial;
  double* exchanged;               ///< AddExchanged4ph::exchanged; rates only
  CollisionTarget collision;
  Thinning4ph thinning;  ///< weight_sum on the device
};

struct Queued {
  std::int32_t pair;  ///< in the table of its kind: points as the star's leader has them
  std::int32_t what;  ///< s' within the group · 4 + channel
  double mismatch;
  double width;       ///< (σ/sb)²
};

/// What testing candidates needs of λ and one λ'.
struct Query {
  double energy;  ///< ω ± ω'
  SpreadSums spread;
};

/// A process that a thread evaluates.
struct InHand {
  int channel = -1;  ///< −1: none
  int branch = 0;    ///< s' within the group
  std::int32_t mode1 = 0, mode2 = 0, mode3 = 0;
  double multiplicity = 0.0;  ///< with the weight of q'
  double delta = 0.0;         ///< multiplicity · δ
  double density = 0.0;       ///< delta/(ωω'ω''ω''')
  double probability = 0.0;
  double squared = 0.0;       ///< |V|²
  bool normal = false;
};

/// Values of a channel, and of all that a block sums.
inline __host__ __device__ int values_of(Use use, int n_temperatures) {
  return use == Use::kThinned ? ThinnedLayout4ph{n_temperatures}.size() : SumLayout4ph{n_temperatures}.size();
}
inline __host__ __device__ int sums_in_shared(Use use, int channels, int n_temperatures) {
  return use == Use::kCollision ? kGroup + 2 : channels * values_of(use, n_temperatures);
}

/// Sums for λ' of one s' and channel, of all that a block holds at once.
inline __host__ __device__ int exchanged_in_shared(const Tables4ph& t, Use use, int sign, int group) {
  return use == Use::kRates && sign > 0 && t.star != nullptr ? group * kExchanged * values_of(use, t.n_temperatures) : 0;
}

/// A block finds and sums all processes of one mode λ with one q' = Q − q (kSign = 1: ++ and +-) or
/// q − Q (kSign = −1: --). Threads test candidates, accepted ones are lined up in a queue in the order
/// of the table, and whenever the queue holds enough processes for all threads they evaluate them: no
/// lane idles in the expensive part, and nothing is ever stored outside the block.
///
/// The table is that of the leader of Q's star. Candidates are tested as the leader's: λ and λ' turned to it have the
/// energies and widths that they have here. Found pairs are turned from it.
template <int kSign, int kAtoms, Form4ph kForm, Use kUse, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    scatter_kernel(const ScatterArguments a) {
  constexpr int kChannels = kSign > 0 ? 2 : 1;
  const Tables4ph& t = a.tables;
  const int nb = kAtoms > 0 ? 3 * kAtoms : t.n_branches;
  const bool symmetric = t.rules.broadening == Broadening::kSymmetric;
  constexpr bool kCollision = kUse == Use::kCollision;
  const SumLayout4ph layout{t.n_temperatures};
  const int n_values = values_of(kUse, t.n_temperatures);
  const int n_sums = sums_in_shared(kUse, kChannels, t.n_temperatures);
  const std::int64_t local_row = blockIdx.x % a.n_rows;
  const std::int64_t row = a.first_row + local_row;
  const auto place = static_cast<int>(blockIdx.x / a.n_rows);
  const auto point = static_cast<std::int32_t>(row / nb);
  const std::int32_t q0 = t.point[point];
  const auto mode0 = static_cast<std::int32_t>(q0 * nb + row % nb);
  const std::int32_t total = t.total_at(a.first_total + place);
  const std::int32_t q1 = kSign > 0 ? t.mesh.add(total, q0, -1) : t.mesh.add(q0, total, -1);
  const Visit4ph visit = visit_4ph(t, kSign, point, q1);
  const int weight = t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1];
  const bool both = kUse == Use::kRates && kSign > 0 && visit == Visit4ph::kBoth;
  const double omega0 = t.omega[mode0];
  const double ratio = both ? exchange_ratio_4ph(t, point, q1) : 0.0;
  const int n_out = kCollision ? 2 : kChannels * n_values;
  double* out = a.partial + (kCollision ? (blockIdx.x * std::int64_t{2} + (kSign > 0 ? 0 : 1)) * 2
                                        : (blockIdx.x * static_cast<std::int64_t>(kChannels4ph) + (kSign > 0 ? 0 : 2)) *
                                              n_values);
  if (visit == Visit4ph::kNone || !(omega0 > 0.0)) {
    for (int i = threadIdx.x; i < n_out; i += kThreads) out[i] = 0.0;
    return;
  }

  const std::int32_t star = t.star_at(a.first_total + place);
  const std::int32_t leader = t.leader_of(star);
  const std::int32_t table_place = star - a.first_star;
  const std::int32_t turned_q0 = t.turn_back(a.first_total + place, q0);
  const std::int32_t turned_q1 = kSign > 0 ? t.mesh.add(leader, turned_q0, -1) : t.mesh.add(turned_q0, leader, -1);
  const auto turned_mode0 = static_cast<std::int32_t>(turned_q0 * nb + row % nb);

  extern __shared__ __align__(16) double shared[];
  auto* pair = reinterpret_cast<Complex<double>*>(shared);                 // [group][n_pairs][9]
  auto* partner = pair + static_cast<std::int64_t>(a.group) * t.n_pairs * 9;  // [group][nb]
  double* sum = reinterpret_cast<double*>(partner + a.group * nb);         // [warps][n_sums]
  double* exchanged = sum + kWarps * n_sums;                               // [warps][group][kExchanged][n_values]
  const int n_exchanged = exchanged_in_shared(t, kUse, kSign, a.group);
  constexpr int kPer = processes_of_thread(kForm);
  constexpr int kAtOnce = kPer * kThreads;
  auto* queue = reinterpret_cast<Queued*>(exchanged + kWarps * n_exchanged);
  auto* program = reinterpret_cast<std::uint32_t*>(queue + queue_length(kForm));  // [steps]
  for (int i = threadIdx.x; kAtoms > 0 && i < a.walk.n_steps; i += kThreads) program[i] = a.walk.program[i];
  // Ranges of candidates, those that have any.
  __shared__ std::int32_t range_begin[kThreads];
  __shared__ std::int32_t range_first[kThreads + 1];  // candidates before the range
  __shared__ Query query[kGroup];                     // of every s' held
  __shared__ std::uint8_t range_what[kThreads];       // s' within the group · channels + channel
  __shared__ int warp_count[kWarps];
  __shared__ unsigned warp_active[kWarps];
  using Scan = cub::BlockScan<std::int64_t, kThreads>;
  __shared__ typename Scan::TempStorage scan_storage;

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < kWarps * n_sums; i += kThreads) sum[i] = 0.0;

  for (int first_branch = 0; first_branch < nb; first_branch += a.group) {
    const int branches = min(a.group, nb - first_branch);
    if (both)
      for (int i = threadIdx.x; i < kWarps * n_exchanged; i += kThreads) exchanged[i] = 0.0;
    double* exchanged_out = a.exchanged + ((static_cast<std::int64_t>(blockIdx.x) * nb) + first_branch) * kExchanged * n_values;
    // One interval of the table per (s', channel, class).
    const int n_ranges = branches * kChannels * PairKeys4ph::kClasses;
    std::int32_t begin = 0;
    std::int32_t length = 0;
    if (threadIdx.x < n_ranges) {
      const int pair_class = threadIdx.x % PairKeys4ph::kClasses;
      const int channel = threadIdx.x / PairKeys4ph::kClasses % kChannels;
      const int branch = threadIdx.x / PairKeys4ph::kClasses / kChannels;
      const std::int32_t mode1 = turned_q1 * nb + first_branch + branch;
      const double omega1 = t.omega[mode1];
      const auto kind = kSign > 0 && channel == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
      const double energy = t.omega[turned_mode0] + kSign * omega1;
      if (omega1 > 0.0 && (kind == PairKind4ph::kDifference || energy > 0.0)) {
        const double reach = a.keys.reach(t.rules, pair_class, t.p(turned_mode0), t.p(mode1));
        const std::uint32_t low = a.keys.energy_key(kind, energy - reach);
        const std::uint32_t high = a.keys.energy_key(kind, energy + reach);
        const std::int32_t* bins = a.kind[static_cast<int>(kind)].bin_begin +
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
    const int what = static_cast<int>(threadIdx.x) / PairKeys4ph::kClasses;
    if (length > 0) {
      const auto at = static_cast<int>(before / kOne);
      range_begin[at] = begin;
      range_first[at] = static_cast<std::int32_t>(before % kOne);
      range_what[at] = static_cast<std::uint8_t>(what);
    }
    if (threadIdx.x == 0) range_first[n_found] = n_candidates;
    const unsigned of_warp = __reduce_or_sync(0xffffffffu, length > 0 ? 1u << (what / kChannels) : 0u);
    if (lane == 0) warp_active[warp] = of_warp;
    if (static_cast<int>(threadIdx.x) < branches) {
      const std::int32_t mode1 = turned_q1 * nb + first_branch + static_cast<std::int32_t>(threadIdx.x);
      query[threadIdx.x] = {t.omega[turned_mode0] + kSign * t.omega[mode1], spread_sums(t.p(turned_mode0), t.p(mode1))};
    }
    for (int i = threadIdx.x; i < branches * nb; i += kThreads) {
      const Complex<double> e =
          t.eigenvector[static_cast<std::int64_t>(q1 * nb + first_branch + i / nb) * nb + i % nb];
      partner[i] = {e.re, kSign * e.im};
    }
    __syncthreads();
    if (n_candidates == 0) {  // the same for all threads
      for (int i = threadIdx.x; both && i < branches * kExchanged * n_values; i += kThreads) exchanged_out[i] = 0.0;
      continue;
    }
    unsigned active = 0;  // branches s' that have candidates
    for (int w = 0; w < kWarps; ++w) active |= warp_active[w];

    // Step 2 of the plan: A of every s' of the group, one element a thread.
    const Complex<double>* contracted = t.contracted + row * t.n_triples * 27;
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
          for (int b = 0; b < 3; ++b) c[u][b] = load(contracted + 27 * static_cast<std::int64_t>(at) + 9 * b + element % 9);
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
        const int at = two ? 2 * (element % 9) : element % 9;
        Complex<double> accumulated[kGroup] = {};
        contract(a.walk_order[first], element, accumulated);
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
          if ((active >> g & 1u) != 0) pair[(g * t.n_pairs + first) * 9 + at] = accumulated[g];
        if (!two) continue;
#pragma unroll
        for (int g = 0; g < kGroup; ++g) accumulated[g] = {};
        contract(a.walk_order[first + 1], element, accumulated);
#pragma unroll
        for (int g = 0; g < kGroup; ++g) {
          if ((active >> g & 1u) == 0) continue;
          Complex<double>* to = pair + (g * t.n_pairs + first) * 9 + at;
          const Complex<double> one = to[0];
          to[0] = one + accumulated[g];
          to[1] = one - accumulated[g];
        }
      }
    } else {
      for (int element = threadIdx.x; element < t.n_pairs * 9; element += kThreads) {
        Complex<double> accumulated[kGroup] = {};
        contract(a.walk_order[element / 9], element, accumulated);
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
          if ((active >> g & 1u) != 0) pair[g * t.n_pairs * 9 + element] = accumulated[g];
      }
    }

    int queued = 0;  // the same in all threads
    const auto add = [&](int slot, double value) {
      value = warp_sum(value);
      if (lane == 0) sum[warp * n_sums + slot] += value;
    };
    /// λ'' and λ''' of an entry of the queue, turned from the leader.
    const auto last_of = [&](const Queued& entry) {
      const auto kind = static_cast<Channel4ph>(kSign > 0 ? entry.what % 4 : 2);
      const std::int32_t turned_q2 = entry.pair / nb / nb;
      const std::int32_t turned_q3 = a.kind[sign_third(kind) > 0 ? 0 : 1].third[table_place * t.mesh.size() + turned_q2];
      const std::int32_t q2 = t.turn(a.first_total + place, turned_q2);
      const std::int32_t q3 = t.turn(a.first_total + place, turned_q3);
      LastTwo last{q2 * nb + entry.pair / nb % nb, q3 * nb + entry.pair % nb, a.walk.zone[q2], static_cast<double>(sign_third(kind))};
      if (kUse == Use::kThinned && sign_third(kind) < 0 && last.mode2 > last.mode3) {  // what is drawn is known by this order
        const std::int32_t mode2 = last.mode2;
        last.mode2 = last.mode3;
        last.mode3 = mode2;
        last.q2 = a.walk.zone[q3];
      }
      return last;
    };
    const auto read = [&](const Queued& queued_process, const LastTwo& last) {
      InHand h;
      h.channel = queued_process.what % 4;
      h.branch = queued_process.what / 4;
      h.mode1 = q1 * nb + first_branch + h.branch;
      const auto kind = static_cast<Channel4ph>(kSign > 0 ? h.channel : 2);
      h.mode2 = last.mode2;
      h.mode3 = last.mode3;
      Process4ph process;
      // What let it into the queue was a sieve: the last bits decide here, as they do on the CPU.
      if (symmetric)
        process = test_window_4ph(t.rules, multiplicity_4ph(kind, t.rules.exact_weights, h.mode1, h.mode2, h.mode3),
                                  queued_process.mismatch, queued_process.width);
      else
        process = test_candidate_4ph(t, kind, mode0, h.mode1, h.mode2, h.mode3);
      if (!(process.multiplicity > 0.0)) return InHand{};
      h.multiplicity = process.multiplicity * weight;
      h.delta = h.multiplicity * delta_4ph_ps(t.rules, process);
      const double omega[4] = {omega0, t.omega[h.mode1], t.omega[h.mode2], t.omega[h.mode3]};
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
      const auto& [channel, branch, mode1, mode2, mode3, multiplicity, delta, density, probability, squared, normal] = in_hand;
      if constexpr (kCollision) {
        double gamma = 0.0;
        if (channel >= 0) {
          const auto kind = static_cast<Channel4ph>(kSign > 0 ? channel : 2);
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
          add_thinned(t, static_cast<Channel4ph>(kSign > 0 ? c : 2), mine ? probability : 0.0, mine ? density : 0.0,
                      mine ? delta : 0.0, mine ? multiplicity : 0.0, squared, normal,
                      !(a.thinning.draws > 0.0), mode1, mode2, mode3,
                      [&](int slot, double value) { add(c * n_values + slot, value); });
        }
      }
    };
    /// Adds the processes of all threads by channel, and by s' where it matters: few in a warp, because the queue keeps the
    /// table's order.
    const auto add_rates = [&](const InHand (&hand)[kPer]) {
      bool waiting[kPer];
      int key[kPer];
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        waiting[i] = hand[i].channel >= 0;
        key[i] = both ? 4 * hand[i].branch + hand[i].channel : hand[i].channel;
      }
      for (;;) {
        int next = -1;
#pragma unroll
        for (int i = kPer - 1; i >= 0; --i)
          if (waiting[i]) next = key[i];
        const unsigned left = __ballot_sync(0xffffffffu, next >= 0);
        if (left == 0) break;
        const int current = __shfl_sync(0xffffffffu, next, __ffs(static_cast<int>(left)) - 1);
        const int c = current % 4;
        const auto kind = static_cast<Channel4ph>(kSign > 0 ? c : 2);
        double* own_sum = sum + warp * n_sums + c * layout.size();
        double* other_sum = exchanged + warp * n_exchanged + (current / 4 * kExchanged + c) * layout.size();
        bool mine[kPer];
        int here = 0;
        int sixths = 0;
#pragma unroll
        for (int i = 0; i < kPer; ++i) {
          mine[i] = waiting[i] && key[i] == current;
          waiting[i] = waiting[i] && !mine[i];
          here += __popc(__ballot_sync(0xffffffffu, mine[i]));
          if (mine[i]) sixths += static_cast<int>(rint(6.0 * hand[i].multiplicity));
        }
        for (int temperature = 0; temperature < t.n_temperatures; ++temperature) {
          double own[4] = {}, other[4] = {};
          const double* n = t.occupation + temperature * t.n_modes();
#pragma unroll
          for (int i = 0; i < kPer; ++i) {
            if (!mine[i]) continue;
            const InHand& h = hand[i];
            const double n2 = n[h.mode2], n3 = n[h.mode3];
            const double w = h.density * bose_factor_4ph(kind, n[h.mode1], n2, n3);
            own[0] += h.normal ? w * h.squared : 0.0;
            own[1] += h.normal ? 0.0 : w * h.squared;
            own[2] += w;
            own[3] += h.delta;
            if (both) {
              const double w1 = ratio * h.density * bose_factor_4ph(kind, n[mode0], n2, n3);
              other[0] += h.normal ? w1 * h.squared : 0.0;
              other[1] += h.normal ? 0.0 : w1 * h.squared;
              other[2] += w1;
              other[3] += ratio * h.delta;
            }
          }
          const int i = both ? lane / 4 % 4 : lane / 8;
          const int to = i == 0   ? layout.normal(temperature)
                         : i == 1 ? layout.umklapp(temperature)
                         : i == 2 ? layout.weighted_phase_space(temperature)
                         : temperature == 0 ? layout.phase_space() : -1;
          const double value = both ? warp_sums_of_eight(lane, own, other) : warp_sums_of_four(lane, own);
          if (lane % (both ? 4 : 8) == 0 && to >= 0) (both && lane >= 16 ? other_sum : own_sum)[to] += value;
        }
        const int six = __reduce_add_sync(0xffffffffu, sixths);
        if (lane == 0) {
          own_sum[layout.six_count()] += six;
          own_sum[layout.evaluations()] += here;
          if (both) other_sum[layout.six_count()] += rint(ratio * six);
        }
      }
    };
    const auto evaluate = [&](int count) {
      InHand hand[kPer];
      if constexpr (kPer == 2 && kUse != Use::kThinned) {
        const int first = 2 * static_cast<int>(threadIdx.x);
        if (first < count) {  // neighbours in the queue, which nearly always share λ'
          const Queued entry[2] = {queue[first], queue[min(first + 1, count - 1)]};
          const LastTwo last[2] = {last_of(entry[0]), last_of(entry[1])};
          const Complex<double>* of[2] = {pair + entry[0].what / 4 * t.n_pairs * 9, pair + entry[1].what / 4 * t.n_pairs * 9};
          double squared[2];
          squared_elements_swapped<2>(a.walk, program, of[0], last, squared);
          if (of[1] != of[0]) {
            const LastTwo alone[1] = {last[1]};
            double its[1];
            squared_elements_swapped<1>(a.walk, program, of[1], alone, its);
            squared[1] = its[0];
          }
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (first + i < count) hand[i] = read(entry[i], last[i]);
            hand[i].squared = squared[i];
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < kPer; ++i) {
          const int at = kPer * static_cast<int>(threadIdx.x) + i;
          if (at >= count) break;
          const LastTwo last[1] = {last_of(queue[at])};
          hand[i] = read(queue[at], last[0]);
          if (hand[i].channel < 0 || (kUse == Use::kThinned && !(hand[i].probability > 0.0))) continue;
          const Complex<double>* of = pair + hand[i].branch * t.n_pairs * 9;
          if constexpr (kForm == Form4ph::kSwapped) {
            double squared[1];
            squared_elements_swapped<1>(a.walk, program, of, last, squared);
            hand[i].squared = squared[0];
          } else {
            hand[i].squared = squared_element<kAtoms>(t, a.walk, program, of, last[0].mode2, last[0].mode3, last[0].q2, last[0].sign);
          }
        }
      }
      if constexpr (kUse == Use::kRates) {
        add_rates(hand);
      } else {
#pragma unroll
        for (int i = 0; i < kPer; ++i) add_one(hand[i]);
      }
    };

    const WindowSieve4ph sieve = WindowSieve4ph::of(t.rules);
    /// Tests candidate `first` + lane, all of a warp together.
    const auto test = [&](std::int32_t first, Queued& found) {
      int low = -1;  // the last range that starts at or before the candidate
      for (int r = 0; r < n_found; r += 32) low += __popc(__ballot_sync(0xffffffffu, r + lane < n_found && range_first[r + lane] <= first));
      const std::int32_t candidate = first + lane;
      if (candidate >= n_candidates) return false;
      while (range_first[low + 1] <= candidate) ++low;
      const int channel = range_what[low] % kChannels;
      const int branch = range_what[low] / kChannels;
      const auto kind = static_cast<Channel4ph>(kSign > 0 ? channel : 2);
      const Query& of = query[branch];
      const PairTables& table = a.kind[sign_third(kind) > 0 ? 0 : 1];
      const std::int64_t at = table_place * a.n_pairs_table + range_begin[low] + (candidate - range_first[low]);
      const std::int32_t index = table.pair[at];
      const double mismatch = of.energy - table.columns.energy[at];
      double width = table.columns.square[at];
      if (symmetric)
        width = symmetric_width_squared_4ph(of.spread, {width, {table.columns.sum[at], table.columns.sum[at + table.columns.stride],
                                                                table.columns.sum[at + 2 * table.columns.stride]}});
      found = {index, branch * 4 + channel, mismatch, width};
      const std::int32_t mode1 = turned_q1 * nb + first_branch + branch;
      if (!sieve.passes(mismatch, width) || !multiplicity_may_be(kind, t.rules.exact_weights, mode1, index / nb)) return false;
      const std::int32_t q2 = index / nb / nb;
      if (!symmetric || kind != Channel4ph::kRedistribution || (q2 != turned_q0 && q2 != turned_q1)) return true;
      // Only now can the last phonons be the first.
      const std::int32_t mode3 = table.third[table_place * t.mesh.size() + q2] * nb + index % nb;
      return !exchanges_nothing(t.set[turned_mode0], t.set[mode1], t.set[index / nb], t.set[mode3]);
    };
    for (std::int32_t base = 0; base < n_candidates; base += kAtOnce) {
      Queued found[kPer];
      unsigned votes[kPer];
      int of_warp = 0;
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        votes[i] = __ballot_sync(0xffffffffu, test(base + (warp * kPer + i) * 32, found[i]));
        of_warp += __popc(votes[i]);
      }
      if (lane == 0) warp_count[warp] = of_warp;
      __syncthreads();
      int at = queued;
      int accepted_in_block = 0;
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp) at += warp_count[w];
        accepted_in_block += warp_count[w];
      }
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        if ((votes[i] >> lane & 1u) != 0) queue[at + __popc(votes[i] & ((1u << lane) - 1u))] = found[i];
        at += __popc(votes[i]);
      }
      queued += accepted_in_block;
      __syncthreads();
      if (queued >= kAtOnce) {
        evaluate(kAtOnce);
        __syncthreads();
        queued -= kAtOnce;
        for (int i = static_cast<int>(threadIdx.x); i < queued; i += kThreads) queue[i] = queue[kAtOnce + i];
        __syncthreads();
      }
    }
    evaluate(queued);
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
        atomicAdd(a.collision.matrix + local_row * t.n_modes() + q1 * nb + first_branch + threadIdx.x,
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
