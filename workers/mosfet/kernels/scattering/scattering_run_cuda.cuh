#pragma once

#include "workers/mosfet/kernels/scattering/column_link.cuh"
#include "workers/mosfet/physics/scattering_link.hpp"
#include "workers/mosfet/physics/working_units.hpp"

/// Balanced scheme without blocking and roughness, with several neighbouring energies for each
/// thread (docs/theory/mosfet.md 5.4).
namespace quasi::mosfet::cuda {

constexpr int kRunNodes = 4;
constexpr int kRunThreads = 768;

/// A row of F over w as kRunNodes interleaved parts with zeros around them. Neighbouring threads
/// read kRunNodes apart and thus find neighbouring words. A run outside the grid finds zeros.
struct RunRow {
  static constexpr int kBefore = 2;  ///< words of a part before node 0
  int nw;
  QUASI_HD int last() const {
    return nw / kRunNodes + kBefore;
  }  ///< the first word of a part that is followed by zeros alone
  QUASI_HD int stride() const { return last() + 2; }
  QUASI_HD int length() const { return kRunNodes * stride(); }
  QUASI_HD int index_of(int n) const { return n % kRunNodes * stride() + n / kRunNodes + kBefore; }
};

/// Positions of the kRunNodes+1 nodes from l + shift on, equal for every l that is a multiple of
/// kRunNodes.
struct alignas(16) RunPlaces {
  int offset[kRunNodes + 1];  ///< from the word of the first node
  int word = 0;               ///< word of the first node for l = 0

  QUASI_HD RunPlaces(const RunRow& row, int shift) {
    // positive, because plain division must round down
    const int shifted = shift + kRunNodes * (1 << 20);
    const int part = shifted % kRunNodes;
    word = shifted / kRunNodes - (1 << 20) + RunRow::kBefore;
    for (int j = 0; j <= kRunNodes; ++j)
      offset[j] = (part + j) % kRunNodes * row.stride() + (part + j) / kRunNodes;
  }
  /// @param run  l / kRunNodes
  QUASI_HD int first(const RunRow& row, int run) const {
    const int at = run + word;
    return at < 0 ? 0 : at > row.last() ? row.last() : at;
  }
};

/// Both ends of one link.
struct RunLink {
  LowRun low;
  HighRun high;
  RunPlaces above, below;
  int row;  ///< row of the partner
};

/// Returns the shared memory of a block of scattering_run_kernel in bytes.
inline std::size_t scattering_run_shared_bytes(const DeviceProblem& p, int states_per_block) {
  const std::size_t rows = static_cast<std::size_t>(p.n_states) * RunRow{p.nw}.length();
  const std::size_t doubles = rows + static_cast<std::size_t>(p.n_levels) * (p.n_levels + p.nz);
  return sizeof(RunLink) * static_cast<std::size_t>(states_per_block) * p.most_joined +
         sizeof(double) * doubles;
}

/// Returns the threads of a block of scattering_run_kernel, and the number of rounds of its loop.
inline int scattering_run_threads(const DeviceProblem& p, int states_per_block) {
  const int items = states_per_block * (p.nw / kRunNodes),
            rounds = (items + kRunThreads - 1) / kRunThreads;
  return ((items + rounds - 1) / rounds + 31) / 32 * 32;
}

/// Computes gain and loss of one column for a group of states. A block is (x, group). F of all
/// states and both ends of every (state, partner, process) lie in shared memory. A thread owns
/// kRunNodes neighbouring w of one state and gathers.
__global__ void __launch_bounds__(kRunThreads, 1)
    scattering_run_kernel(const __grid_constant__ DeviceProblem p,
                          const __grid_constant__ DevicePoint q, int states_per_block) {
  // The flag may be that of the previous step, because Δt is computed at the same time.
  if (!q.clock->active) return;
  extern __shared__ double shared[];
  auto* links = reinterpret_cast<RunLink*>(shared);  // [states_per_block][most_joined]
  double* filling =
      reinterpret_cast<double*>(links + states_per_block * p.most_joined);  // [n_states][length]
  const RunRow layout{p.nw};
  const int length = layout.length();
  double* density = filling + p.n_states * length;  // |ψ|² [n_levels][nz]
  double* overlap = density + p.n_levels * p.nz;    // [n_levels][n_levels]
  const int i = blockIdx.x, first = blockIdx.y * states_per_block, most = p.most_joined;
  const EnergyGrid grid = p.grid();

  for (int k = threadIdx.x; k < p.n_states * length; k += blockDim.x) filling[k] = 0.0;
  for (int k = threadIdx.x; k < p.n_levels * p.nz; k += blockDim.x) {
    const int level = k / p.nz, j = k - level * p.nz;
    const double psi = q.psi[(static_cast<long long>(level) * p.nx + i) * p.nz + j];
    density[k] = psi * psi;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < p.n_states * p.nw; k += blockDim.x) {
    const int state = k / p.nw, l = k - state * p.nw;
    filling[state * length + layout.index_of(l)] =
        q.angle_sum[(static_cast<long long>(state) * p.nx + i) * p.nw + l] / grid.kane(l);
  }
  // Four lanes compute one pair of levels.
  const int pairs = p.n_levels * p.n_levels, lane = threadIdx.x & 3;
  for (int base = 0; base < pairs; base += static_cast<int>(blockDim.x) / 4) {
    const int pair = base + static_cast<int>(threadIdx.x) / 4;
    double sum = 0.0;
    if (pair < pairs) {
      const double *a = density + pair / p.n_levels * p.nz, *b = density + pair % p.n_levels * p.nz;
      for (int j = lane; j < p.nz; j += 4) sum += a[j] * b[j];
    }
    for (int step = 2; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (pair < pairs && lane == 0) overlap[pair] = sum * p.dz;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < states_per_block * most; k += blockDim.x) {
    const int state = first + k / most;
    if (k % most >= p.joined_count[state / p.subbands]) continue;
    const ColumnLink joined = column_link(p, q, i, state, k % most);
    const ScatteringLink low = joined.as_low(grid, overlap[joined.levels]),
                         high = joined.as_high(grid, overlap[joined.levels]);
    links[k] = {low_run(grid, low),
                high_run(grid, high),
                {layout, low.shift},
                {layout, -high.shift - 1},
                joined.partner * length};
  }
  __syncthreads();

  const int runs = p.nw / kRunNodes;
  for (int k = threadIdx.x; k < states_per_block * runs; k += blockDim.x) {
    const int local = k / runs, run = k - local * runs, l = run * kRunNodes;
    const int state = first + local, valley = state / p.subbands;
    const RunLink* link = links + local * most;
    GainLoss sums[kRunNodes];
    for (const RunLink* const end = link + p.joined_count[valley]; link != end; ++link) {
      const double* above = filling + link->row + link->above.first(layout, run);
      const double* below = filling + link->row + link->below.first(layout, run);
      add_run<kRunNodes>(
          grid, {link->low, link->high}, l, [&](int j) { return above[link->above.offset[j]]; },
          [&](int j) { return below[link->below.offset[j]]; }, sums);
    }
    const double s_own = p.root_mass[valley];
#pragma unroll
    for (int j = 0; j < kRunNodes; ++j) {
      const long long row = (static_cast<long long>(state) * p.nx + i) * p.nw + l + j;
      const double kane = grid.kane(l + j);
      double gain = sums[j].gain(kane, s_own), loss = sums[j].loss(kane);
      if (p.elastic_rate != nullptr) {  // relaxation to the angular mean at the same w
        const double rate =
            p.elastic_rate[(static_cast<long long>(valley) * p.nx + i) * p.nw + l + j];
        gain += rate * q.angle_sum[row] / (2.0 * units::kPi);
        loss += rate;
      }
      q.gain[row] = gain;
      q.loss[row] = loss;
    }
  }
}

}  // namespace quasi::mosfet::cuda
