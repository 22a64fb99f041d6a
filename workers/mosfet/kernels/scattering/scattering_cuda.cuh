#pragma once

#include "workers/mosfet/kernels/scattering/column_link.cuh"
#include "workers/mosfet/physics/roughness.hpp"
#include "workers/mosfet/physics/scattering_link.hpp"

namespace quasi::mosfet::cuda {

/// Returns the shared memory of scattering_kernel in bytes: F of a column (and r = f/(1−f) with
/// Pauli blocking), overlaps (and roughness strengths), and the links of the block's states.
inline std::size_t scattering_shared_bytes(const DeviceProblem& p, int states_per_block) {
  const std::size_t states = static_cast<std::size_t>(p.n_states) * p.nw;
  const std::size_t levels = static_cast<std::size_t>(p.n_levels) * p.n_levels;
  return sizeof(double) *
             (states * (p.pauli ? 2 : 1) + levels * (p.roughness_spectrum != nullptr ? 2 : 1)) +
         sizeof(ScatteringLink) * 2 * static_cast<std::size_t>(states_per_block) * p.most_joined;
}

/// Computes gain and loss of one column for a group of states (docs/theory/mosfet.md 5.4). A block
/// is (x, group). F = Φ̃/(1+2αw) of all states and both links of every (state, partner, process)
/// lie in shared memory. A thread owns one (state, w) and gathers.
template <bool kBlocked, bool kSpectrum>
__global__ void __launch_bounds__(768, 1)
    scattering_kernel(const __grid_constant__ DeviceProblem p,
                      const __grid_constant__ DevicePoint q, int states_per_block) {
  // The flag may be that of the previous step, because Δt is computed at the same time.
  if (!q.clock->active) return;
  extern __shared__ double shared[];
  double* filling = shared;                                     // [n_states][nw]
  double* odds = filling + p.n_states * p.nw;                   // [n_states][nw]
  double* overlap = odds + (kBlocked ? p.n_states * p.nw : 0);  // [n_levels][n_levels]
  double* rough = overlap + p.n_levels * p.n_levels;            // [n_levels][n_levels]
  auto* links =
      reinterpret_cast<ScatteringLink*>(rough + (kSpectrum ? p.n_levels * p.n_levels : 0));
  const int i = blockIdx.x, first = blockIdx.y * states_per_block, most = p.most_joined;
  const EnergyGrid grid = p.grid();
  const auto full_of = [&](int valley) { return full_filling(p.root_mass[valley], q.pdf_scale); };

  for (int k = threadIdx.x; k < p.n_states * p.nw; k += blockDim.x) {
    const int state = k / p.nw, l = k - state * p.nw;
    filling[k] = q.angle_sum[(static_cast<long long>(state) * p.nx + i) * p.nw + l] / grid.kane(l);
    if constexpr (kBlocked) odds[k] = odds_of(filling[k], full_of(state / p.subbands));
  }
  for (int k = threadIdx.x; k < p.n_levels * p.n_levels; k += blockDim.x) {
    const int level_a = k / p.n_levels, level_b = k % p.n_levels;
    const double* a = q.psi + (static_cast<long long>(level_a) * p.nx + i) * p.nz;
    const double* b = q.psi + (static_cast<long long>(level_b) * p.nx + i) * p.nz;
    double sum = 0.0;
    for (int j = 1; j < p.nz - 1; ++j) sum += a[j] * a[j] * b[j] * b[j];
    overlap[k] = sum * p.dz;
    if constexpr (kSpectrum)
      rough[k] = level_a / p.subbands != level_b / p.subbands
                     ? 0.0
                     : roughness_strength(a, b, p.silicon_first, p.silicon_last, p.dz,
                                          p.mz[level_a / p.subbands]);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < states_per_block * most; k += blockDim.x) {
    const int state = first + k / most;
    if (k % most >= p.joined_count[state / p.subbands]) continue;
    const ColumnLink joined = column_link(p, q, i, state, k % most);
    const double* strength =
        kSpectrum && joined.process.kind == ProcessKind::kRoughness ? rough : overlap;
    links[2 * k] = joined.as_low(grid, strength[joined.levels]);
    links[2 * k].other = joined.partner;
    links[2 * k + 1] = joined.as_high(grid, strength[joined.levels]);
  }
  __syncthreads();

  for (int k = threadIdx.x; k < states_per_block * p.nw; k += blockDim.x) {
    const int local = k / p.nw, l = k - local * p.nw;
    const int state = first + local, valley = state / p.subbands;
    const ScatteringLink* link = links + 2 * local * most;
    const int count = p.joined_count[valley];
    const GridNode node = node_at(l);
    const double s_own = p.root_mass[valley], kane = grid.kane(node.number);
    LinkEnds ends;
    ends.own_odds = odds + state * p.nw;
    GainLoss sum;
    if (p.balanced) {
      for (int at = 0; at < count; ++at) {
        const int other = link[2 * at].other;
        ends.partner = filling + other * p.nw;
        ends.partner_odds = odds + other * p.nw;
        if constexpr (kSpectrum)
          ends.spectrum =
              p.processes[p.joined[valley * most + at].process].kind == ProcessKind::kRoughness
                  ? p.roughness_spectrum + static_cast<long long>(valley) * p.nw * p.nw
                  : nullptr;
        add_links<kBlocked, kSpectrum>(grid, link[2 * at], link[2 * at + 1], node, ends, &sum);
      }
    } else {
      for (int at = 0; at < count; ++at) {
        const ColumnLink joined = column_link(p, q, i, state, at);
        const ScatteringProcess& process = joined.process;
        const double gap = joined.gap_ev / p.dw, quantum = process.energy_ev / p.dw,
                     n = process.occupation;
        const double coupling = process.coupling * overlap[joined.levels];
        const InterpolatedPartner partner{filling + joined.partner * p.nw, joined.root_mass};
        if (process.kind == ProcessKind::kElastic) {
          add_interpolated(grid, l + gap, 2.0 * coupling, 2.0 * coupling, partner, &sum);
        } else {
          add_interpolated(grid, l + gap + quantum, coupling * (n + 1.0), coupling * n, partner,
                           &sum);
          add_interpolated(grid, l + gap - quantum, coupling * n, coupling * (n + 1.0), partner,
                           &sum);
        }
      }
    }
    const long long row = (static_cast<long long>(state) * p.nx + i) * p.nw + l;
    double gain = sum.gain(kane, s_own);
    double loss =
        kBlocked
            ? sum.blocked_loss(kane, s_own, capacity_of(filling[state * p.nw + l], full_of(valley)))
            : sum.loss(kane);
    if (p.elastic_rate != nullptr) {  // relaxation to the angular mean at the same w
      const double rate = p.elastic_rate[(static_cast<long long>(valley) * p.nx + i) * p.nw + l];
      gain += rate * q.angle_sum[row] / (2.0 * units::kPi);
      loss += rate;
    }
    q.gain[row] = gain;
    q.loss[row] = loss;
  }
}

using ScatteringKernel = void (*)(DeviceProblem, DevicePoint, int);

/// Returns the variant of the kernel that a problem needs.
inline ScatteringKernel scattering_kernel_of(const DeviceProblem& p) {
  const bool spectrum = p.roughness_spectrum != nullptr;
  if (p.pauli) return spectrum ? scattering_kernel<true, true> : scattering_kernel<true, false>;
  return spectrum ? scattering_kernel<false, true> : scattering_kernel<false, false>;
}

}  // namespace quasi::mosfet::cuda
