#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/physics/scattering_link.hpp"

namespace quasi::mosfet::cuda {

/// Bytes of shared memory of scattering_kernel: F of a column, overlaps, and the links of the block's
/// states.
inline std::size_t scattering_shared_bytes(const DeviceProblem& p, int states_per_block) {
  return sizeof(double) * (static_cast<std::size_t>(p.n_states) * p.nw + p.n_levels * p.n_levels) +
         sizeof(ScatteringLink) * 2 * static_cast<std::size_t>(states_per_block) * p.n_states * p.n_processes;
}

__device__ inline bool joins(ProcessKind kind, int valley, int other) {
  return (kind == ProcessKind::kF) != (valley == other);
}

/// Gain and loss of one column for a group of states. Block: (x, group); F = Φ̃/(1+2αw) of all states
/// and both links of every (state, partner, process) lie in shared memory; a thread owns one (state, w)
/// and gathers.
__global__ void __launch_bounds__(768, 1)
scattering_kernel(DeviceProblem p, DevicePoint q, int states_per_block) {
  if (!q.clock->active) return;
  extern __shared__ double shared[];
  double* filling = shared;                                  // [n_states][nw]
  double* overlap = filling + p.n_states * p.nw;             // [n_levels][n_levels]
  auto* links = reinterpret_cast<ScatteringLink*>(overlap + p.n_levels * p.n_levels);
  const int i = blockIdx.x, first = blockIdx.y * states_per_block;
  const EnergyGrid grid = p.grid();

  for (int k = threadIdx.x; k < p.n_states * p.nw; k += blockDim.x) {
    const int state = k / p.nw, l = k - state * p.nw;
    filling[k] = q.angle_sum[(static_cast<long long>(state) * p.nx + i) * p.nw + l] / grid.kane(l);
  }
  for (int k = threadIdx.x; k < p.n_levels * p.n_levels; k += blockDim.x) {
    const double* a = q.psi + (static_cast<long long>(k / p.n_levels) * p.nx + i) * p.nz;
    const double* b = q.psi + (static_cast<long long>(k % p.n_levels) * p.nx + i) * p.nz;
    double sum = 0.0;
    for (int j = 1; j < p.nz - 1; ++j) sum += a[j] * a[j] * b[j] * b[j];
    overlap[k] = sum * p.dz;
  }
  __syncthreads();
  const int per_state = p.n_states * p.n_processes;
  for (int k = threadIdx.x; k < states_per_block * per_state; k += blockDim.x) {
    const int state = first + k / per_state, other = k % per_state / p.n_processes;
    const ScatteringProcess process = p.processes[k % p.n_processes];
    const int valley = state / p.subbands, other_valley = other / p.subbands;
    const int level = p.family_of[valley] * p.subbands + state % p.subbands;
    const int other_level = p.family_of[other_valley] * p.subbands + other % p.subbands;
    const double gap = q.energy[static_cast<long long>(level) * p.nx + i] + p.offset[valley] -
                       q.energy[static_cast<long long>(other_level) * p.nx + i] - p.offset[other_valley];
    const double coupling = process.coupling * overlap[level * p.n_levels + other_level];
    const bool elastic = process.kind == ProcessKind::kElastic;
    links[2 * k] = make_link(grid, gap + process.energy_ev, coupling, process.occupation, elastic);
    links[2 * k + 1] = make_link(grid, -gap + process.energy_ev, coupling, process.occupation, elastic);
  }
  __syncthreads();

  for (int k = threadIdx.x; k < states_per_block * p.nw; k += blockDim.x) {
    const int local = k / p.nw, l = k - local * p.nw;
    const int state = first + local, valley = state / p.subbands;
    const int level = p.family_of[valley] * p.subbands + state % p.subbands;
    const double own_ev = q.energy[static_cast<long long>(level) * p.nx + i] + p.offset[valley];
    const double s_own = p.root_mass[valley];
    GainLoss sum;
    for (int other = 0; other < p.n_states; ++other) {
      const int other_valley = other / p.subbands;
      const double s_other = p.root_mass[other_valley];
      const double* partner = filling + other * p.nw;
      for (int process = 0; process < p.n_processes; ++process) {
        const ProcessKind kind = p.processes[process].kind;
        if (!joins(kind, valley, other_valley)) continue;
        const int at = 2 * ((local * p.n_states + other) * p.n_processes + process);
        if (p.balanced) {
          add_links(grid, links[at], links[at + 1], l, partner, s_own, s_other, &sum);
          continue;
        }
        const int other_level = p.family_of[other_valley] * p.subbands + other % p.subbands;
        const double gap = (own_ev - q.energy[static_cast<long long>(other_level) * p.nx + i] -
                            p.offset[other_valley]) / p.dw;
        const double coupling = p.processes[process].coupling * overlap[level * p.n_levels + other_level];
        if (kind == ProcessKind::kElastic) {
          add_interpolated(grid, l + gap, l, 2.0 * coupling, 2.0 * coupling, partner, s_own, s_other, &sum);
        } else {
          const double quantum = p.processes[process].energy_ev / p.dw;
          const double occupation = p.processes[process].occupation;
          add_interpolated(grid, l + gap + quantum, l, coupling * (occupation + 1.0), coupling * occupation,
                           partner, s_own, s_other, &sum);
          add_interpolated(grid, l + gap - quantum, l, coupling * occupation, coupling * (occupation + 1.0),
                           partner, s_own, s_other, &sum);
        }
      }
    }
    const long long row = (static_cast<long long>(state) * p.nx + i) * p.nw + l;
    q.gain[row] = sum.gain;
    q.loss[row] = sum.loss(grid.kane(l));
  }
}

}  // namespace quasi::mosfet::cuda
