#pragma once

#include "workers/thermal/kernels/four_phonon/scatter/scatter_block_4ph_cuda.cuh"

/// Adds processes to the rows of λ'' and λ''' (docs/theory/thermal.md 11.5): by a list of the
/// launch, or, where the list is full, one at a time. Integer sums have the same bits either way.
namespace quasi::thermal::cuda4ph {

/// Adds a number of units to one integer sum. @param words  its low and high word
__device__ __forceinline__ void add_units(unsigned long long* words, double units, int low_bits) {
  const SharedTerm4ph term = SharedTerm4ph::of(units, low_bits);
  atomicAdd(words, static_cast<unsigned long long>(term.low));
  if (term.high != 0) atomicAdd(words + 1, static_cast<unsigned long long>(term.high));
}

/// Adds one process to the integer sums of one row in global memory.
/// @param third   row of λ''' instead of λ''
/// @param weight  SharedList::weight of the row
__device__ __forceinline__ void add_to_row(const ScatterArguments& a, int temperature,
                                           const SharedProcess& p, bool third, double weight) {
  const Tables4ph& t = a.tables;
  const SumLayout4ph layout{t.n_temperatures};
  const std::int32_t mode = third ? p.mode3 : p.mode2;
  const std::int32_t row =
      t.exchange->star[mode / t.n_branches] * t.n_branches + mode % t.n_branches;
  const std::int32_t row_channel = row * kChannels4ph + static_cast<int>(p.channel(third));
  unsigned long long* words =
      a.shared.words +
      2 * layout.size() *
          (static_cast<std::int64_t>(blockIdx.y) * t.n_rows() * kChannels4ph + row_channel);
  const SharedScale4ph scale = a.shared.scale[row_channel * t.n_temperatures + temperature];
  const int low_bits = a.shared.units.low_bits;
  add_units(words + 2 * (p.normal() ? layout.normal(temperature) : layout.umklapp(temperature)),
            weight * p.squared * power_of_two(scale.rate), low_bits);
  add_units(words + 2 * layout.weighted_phase_space(temperature),
            weight * power_of_two(scale.weighted_phase_space), low_bits);
  if (temperature > 0) return;
  add_units(words + 2 * layout.phase_space(), p.delta * power_of_two(scale.phase_space), low_bits);
  atomicAdd(words + 2 * layout.six_count(), static_cast<unsigned long long>(p.count));
}

/// Shares the weighed processes of all lanes, kPerThread for each, with the rows of λ'' and λ'''.
/// @param at  entries of the queue of the lane; −1: none
template <typename V>
__device__ __forceinline__ void share_processes(const ScatterArguments& a, const ScatterBlock<V>& b,
                                                const int (&at)[V::kPerThread],
                                                const double (&squared)[V::kPerThread]) {
  constexpr int kLast = V::kPerThread - 1;
  int code[V::kPerThread];
  unsigned lanes[V::kPerThread];
  int count = 0;
#pragma unroll
  for (int i = 0; i < V::kPerThread; ++i) {
    code[i] = at[i] < 0 ? -1 : b.queue.code[at[i]];
    lanes[i] = __ballot_sync(0xffffffffu, code[i] >= 0);
    count += __popc(lanes[i]);
  }
  if (count == 0) return;
  unsigned place = 0;
  if (a.list.capacity > 0) {
    if (b.lane == 0) place = atomicAdd(a.list.count + blockIdx.y, static_cast<unsigned>(count));
    place = __shfl_sync(0xffffffffu, place, 0);
  }
  const int n_temperatures = a.tables.n_temperatures;
  const double pairs = 0.5 * b.half_pairs;
#pragma unroll 1
  for (int i = 0; i < V::kPerThread; ++i) {  // long code, which the caches should hold once
    const unsigned of_all = i == 0 ? lanes[0] : lanes[kLast];
    const int of_lane = i == 0 ? code[0] : code[kLast];
    const unsigned number = place + __popc(of_all & ((1u << b.lane) - 1u));
    place += __popc(of_all);
    if (of_lane < 0) continue;
    const int entry = i == 0 ? at[0] : at[kLast];
    const int2 modes = b.queue.modes[entry];
    const double2 weights = b.queue.test[entry];
    const bool recombines = V::channel(of_lane % 4) == Channel4ph::kRecombination;
    const SharedProcess process{
        .mode2 = modes.x,
        .mode3 = modes.y,
        .flags = ((of_lane & kNormalBit) != 0 ? SharedProcess::kNormal : 0) |
                 (recombines ? SharedProcess::kRecombines : 0),
        .count = (of_lane >> kPartsShift) * b.half_pairs,
        .squared = i == 0 ? squared[0] : squared[kLast],
        .delta = pairs * weights.y};
    const bool listed = number < a.list.capacity;
    const std::int64_t to = static_cast<std::int64_t>(blockIdx.y) * a.list.capacity + number;
    if (listed) a.list.store(to, process);
    for (int t = 0; t < n_temperatures; ++t) {
      const double* n = a.tables.occupation + t * a.tables.n_modes();
      const double n0 = n[b.mode0],
                   n1 = n[b.q1 * b.n_branches + b.first_branch + of_lane % kNormalBit / 4];
      const bool read_before = V::kForm == Form4ph::kSwapped && t == 0;
      const Complex<double> last =
          read_before ? b.slot[i * kThreads] : Complex<double>{n[modes.x], n[modes.y]};
      const double n2 = last.re, n3 = last.im;
      const double w = pairs * weights.x;
      const double second =
          w * (recombines ? bose_factor_4ph(Channel4ph::kRecombination, n0, n1, n3)
                          : bose_factor_4ph(Channel4ph::kRedistribution, n3, n0, n1));
      const double third =
          w * (recombines ? bose_factor_4ph(Channel4ph::kSplitting, n0, n1, n2)
                          : bose_factor_4ph(Channel4ph::kRedistribution, n2, n0, n1));
      if (listed) {
        a.list.weight[t * a.list.stride + to] = {second, third};
      } else {
#pragma unroll 1
        for (int r = 0; r < 2; ++r) add_to_row(a, t, process, r == 1, r == 1 ? third : second);
      }
    }
  }
  __syncwarp();  // the queue moves its entries next
}

}  // namespace quasi::thermal::cuda4ph
