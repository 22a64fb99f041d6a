#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/scatter/scatter_arguments_4ph_cuda.cuh"
#include "workers/thermal/kernels/warp_sums_cuda.cuh"

namespace quasi::thermal::cuda4ph {

/// Compile-time choices of one scattering kernel. See docs/theory/thermal.md 7 for the equations.
/// @tparam sign_of_second   sign of q' and ω': 1 for ++ and +-, −1 for --
/// @tparam atoms            atoms of the cell; 0: any number
/// @tparam ElementReal      number type of A and of the sums of a matrix element
template <int sign_of_second, int atoms, Form4ph form, Use use, typename ElementReal>
struct ScatterVariant {
  using Real = ElementReal;
  static constexpr int kSign = sign_of_second;
  static constexpr int kAtoms = atoms;
  static constexpr Form4ph kForm = form;
  static constexpr Use kUse = use;
  static constexpr int kChannels = kSign > 0 ? 2 : 1;
  static constexpr bool kCollision = kUse == Use::kCollision;
  static constexpr bool kShared = kUse == Use::kShared;
  /// Parts of a process that the queue counts: multiplicities are sixths, shares of them twelfths.
  static constexpr int kParts = kShared ? 12 : 6;
  static constexpr int kPerThread = processes_of_thread(kForm);
  static constexpr int kPerWarp = 32 * kPerThread;
  /// Channel of a number below kChannels.
  __device__ static Channel4ph channel(int number) {
    return static_cast<Channel4ph>(kSign > 0 ? number : 2);
  }
};

/// Entries of a queue: those left over, those found next, and an empty one wherever s' changes.
constexpr int queue_length(Form4ph form) { return 64 * processes_of_thread(form) + 8; }
static_assert(kGroup < 8);

/// Queue of the accepted candidates of a warp, in the order of the sorted table.
struct Queue {
  double2* test;  ///< Δω and (σ/sb)²; once weighed: density and delta of ProcessTerm
  int2* modes;    ///< λ'' and λ''' with the points of the star's representative
  /// s' within the group · 4 + channel; for Use::kShared also the number of the share; an empty
  /// entry has −1
  std::int32_t* code;
};
constexpr int queue_bytes(Form4ph form) {
  return queue_length(form) *
         static_cast<int>(sizeof(double2) + sizeof(int2) + sizeof(std::int32_t));
}
static_assert(queue_bytes(Form4ph::kSwapped) % 16 == 0 && queue_bytes(Form4ph::kPairs) % 16 == 0);
/// Bits of Queue::code once a process is weighed: whether it is normal, and kParts times its
/// multiplicity.
constexpr int kNormalBit = 1 << 8, kPartsShift = 9;
/// First bit of the number of the share in Queue::code before a process is weighed.
constexpr int kShareShift = 8;
/// Returns quartet_share_4ph() by its number.
__device__ __forceinline__ double share_of_number(int number) {
  return number == 1 ? 2.0 : number == 2 ? 1.0 : number == 3 ? 2.0 / 3.0 : 0.5;
}

/// Energy and spread of λ and one λ', against which candidates are tested.
struct Query {
  double energy;  ///< ω ± ω'
  SpreadSums spread;
  std::int32_t low, high;  ///< precedence of λ and λ' in rising order; Use::kShared only
};

/// Ranges of candidates of a group of branches s', without the empty ones. In shared memory.
struct CandidateRanges {
  std::int32_t offset[kThreads];     ///< position in the table minus position among the candidates
  std::int32_t first[kThreads + 1];  ///< candidates before the range
  std::uint8_t code[kThreads];       ///< as Queue::code
  Query query[kGroup];               ///< of every s' of the group
  unsigned warp_active[kWarps];      ///< bit g: s' = g has candidates in the ranges of the warp
};
using RangeScan = cub::BlockScan<std::int64_t, kThreads>;

/// A process with its weights, as one thread holds it.
struct ProcessTerm {
  int channel = -1;  ///< −1: none
  int branch = 0;    ///< s' within the group
  std::int32_t mode1 = 0, mode2 = 0, mode3 = 0;
  double multiplicity = 0.0;  ///< with the weight of q'
  double delta = 0.0;         ///< multiplicity · δ
  double density = 0.0;       ///< delta/(ωω'ω''ω''')
  double probability = 0.0;   ///< of being drawn
  double squared = 0.0;       ///< |V|²
  bool normal = false;
  double number2 = 0.0, number3 = 0.0;  ///< n'' and n''' at the first temperature
};

/// State of a block that sums the processes of one mode λ with one q'.
template <typename V>
struct ScatterBlock {
  using Real = typename V::Real;

  // The mode λ = (q, s), the point q', and the table of their total momentum.
  int n_branches;
  std::int32_t local_row;  ///< row of the launch
  std::int32_t row;        ///< row of the problem
  std::int64_t block;      ///< number of the block in the launch
  std::int32_t point;
  std::int32_t q0, q1, mode0;
  std::int32_t representative_mode0;  ///< λ in the frame of the star's representative
  std::int32_t representative_q0, representative_q1;
  int weight;          ///< points that q' stands for
  bool both;           ///< adds to the row of λ' too (exchange_4ph.hpp)
  double ratio;        ///< exchange_ratio_4ph where `both`
  int half_pairs;      ///< twice the pairs of points of a visit of weight 1 (for_each_row_4ph)
  double per_omega0;   ///< 1/ω, ps
  std::int32_t table;  ///< number of the table among those of the launch
  const std::int32_t* rotated;  ///< [n_q] representative's frame → frame of Q; null: the same

  // Shared memory.
  int lane, warp;
  Complex<double>* partner;  ///< [group][n_branches] e' of every s', conjugated for --
  Complex<Real>* pair;       ///< [group][n_pairs][9] A of ContractionPlan4ph
  Queue queue;               ///< of the warp
  Complex<double>* slot;     ///< SwappedElements::slot of the thread
  int n_sums, n_exchanged, n_values;
  double* sum;             ///< [warps][n_sums]
  double* exchanged;       ///< [warps][group][kExchanged][n_values]
  std::uint32_t* program;  ///< [steps] CellPath4ph::program

  // The group of branches s' at work.
  int first_branch, branches;
  unsigned active;  ///< bit g: s' = g of the group has candidates

  /// Adds the warp's sum of `value` to the warp's own sum number `index`.
  __device__ __forceinline__ void add(int index, double value) const {
    value = warp_sum(value);
    if (lane == 0) sum[warp * n_sums + index] += value;
  }
  /// Destination of the sums of the group for λ'.
  __device__ __forceinline__ double* exchanged_out(const ScatterArguments& a) const {
    return a.exchanged + (block * n_branches + first_branch) * kExchanged * n_values;
  }
};

/// Number and destination of the values that a block writes.
template <typename V>
__device__ __forceinline__ int output_size(int n_values) {
  return V::kCollision ? 2 : V::kChannels * n_values;
}
template <typename V>
__device__ __forceinline__ double* output_of(const ScatterArguments& a, std::int64_t block,
                                             int n_values) {
  return a.partial + (V::kCollision ? (block * 2 + (V::kSign > 0 ? 0 : 1)) * 2
                                    : (block * kChannels4ph + (V::kSign > 0 ? 0 : 2)) * n_values);
}

/// Sets what does not depend on shared memory.
/// @return false where no process is possible: q' has no weight, or λ takes no part.
template <typename V>
__device__ __forceinline__ bool find_row(const ScatterArguments& a, ScatterBlock<V>& b) {
  const Tables4ph& t = a.tables;
  b.n_branches = V::kAtoms > 0 ? 3 * V::kAtoms : t.n_branches;
  b.n_values = values_of(V::kUse, t.n_temperatures);
  b.n_sums = sums_in_shared(V::kUse, V::kChannels, t.n_temperatures);
  b.local_row = static_cast<std::int32_t>(blockIdx.x);
  b.row = static_cast<std::int32_t>(a.first_row) + b.local_row;
  const auto position = static_cast<std::int32_t>(blockIdx.y);
  b.block = static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  b.point = b.row / b.n_branches;
  const PartnerPoint4ph partner_point =
      a.partner_point[(static_cast<std::int64_t>(position) * t.n_points + b.point) * 2 +
                      (V::kSign > 0 ? 0 : 1)];
  b.q0 = t.point[b.point];
  b.q1 = partner_point.q1;
  b.mode0 = b.q0 * b.n_branches + b.row % b.n_branches;
  b.weight = partner_point.weight < 0 ? -partner_point.weight : partner_point.weight;
  b.both = V::kShared && partner_point.weight < 0;
  const double omega0 = t.omega[b.mode0];
  if (b.weight == 0 || !(omega0 > 0.0)) return false;
  b.per_omega0 = 1.0 / omega0;
  b.ratio = b.both ? exchange_ratio_4ph(t, b.point, b.q1) : 0.0;
  if constexpr (V::kShared) b.half_pairs = (b.both ? 2 : 1) * t.exchange->star_size[b.point];
  b.table = t.star_at(a.first_total + position) - a.first_star;
  b.representative_q0 = partner_point.representative_q0;
  b.representative_q1 = partner_point.representative_q1;
  b.representative_mode0 = partner_point.representative_q0 * b.n_branches + b.row % b.n_branches;
  b.rotated = t.order
                  ? t.order->rotated + t.order->operation[a.first_total + position] * t.mesh.size()
                  : nullptr;
  return true;
}

/// Divides the dynamic shared memory of the launch among the arrays of the block, loads the
/// program of the path and clears the sums.
template <typename V>
__device__ __forceinline__ void divide_shared_memory(const ScatterArguments& a, double* shared,
                                                     ScatterBlock<V>& b) {
  const Tables4ph& t = a.tables;
  b.lane = threadIdx.x % 32;
  b.warp = threadIdx.x / 32;
  b.partner = reinterpret_cast<Complex<double>*>(shared);
  b.pair = reinterpret_cast<Complex<typename V::Real>*>(b.partner + a.group * b.n_branches);
  auto* queues = reinterpret_cast<unsigned char*>(b.pair) +
                 elements_bytes<typename V::Real>(a.group, t.n_pairs);
  b.queue.test = reinterpret_cast<double2*>(queues + b.warp * queue_bytes(V::kForm));
  b.queue.modes = reinterpret_cast<int2*>(b.queue.test + queue_length(V::kForm));
  b.queue.code = reinterpret_cast<std::int32_t*>(b.queue.modes + queue_length(V::kForm));
  auto* slots = queues + kWarps * queue_bytes(V::kForm);
  b.slot = reinterpret_cast<Complex<double>*>(slots) + threadIdx.x;
  b.sum = reinterpret_cast<double*>(slots + slot_bytes(V::kForm));
  b.exchanged = b.sum + kWarps * b.n_sums;
  b.n_exchanged = exchanged_in_shared(V::kUse, a.group, t.n_temperatures);
  b.program = reinterpret_cast<std::uint32_t*>(b.exchanged + kWarps * b.n_exchanged);
  for (int i = threadIdx.x; V::kAtoms > 0 && i < a.path.n_steps; i += kThreads)
    b.program[i] = a.path.program[i];
  for (int i = threadIdx.x; i < kWarps * b.n_sums; i += kThreads) b.sum[i] = 0.0;
}

}  // namespace quasi::thermal::cuda4ph
