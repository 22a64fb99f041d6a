#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/physics/scattering_link.hpp"

namespace quasi::mosfet::cuda {

/// Begin here: one state of a column with one (partner, process) that it is joined to.
/// scattering_cuda.cuh sums the links on the device in general, scattering_run_cuda.cuh in the
/// common case, and scattering_cpu.cpp on the host.
/// See docs/theory/mosfet.md 5.4 for the equations.
struct ColumnLink {
  int partner;       ///< number of the partner state
  int levels;        ///< index of the two levels in a matrix [n_levels][n_levels]
  double gap_ev;     ///< ε_own − ε_partner, with the offsets of their valleys
  double root_mass;  ///< √(m_x m_y) of the partner, eV fs² nm⁻²
  ScatteringProcess process;

  /// Returns the link in which the state is the low end. @param strength  overlap or roughness of
  /// the two levels
  __device__ ScatteringLink as_low(const EnergyGrid& grid, double strength) const {
    return make_link(grid, gap_ev + process.energy_ev, process.coupling * strength,
                     process.occupation, is_elastic(process.kind), root_mass);
  }
  /// Returns the link in which the state is the high end.
  __device__ ScatteringLink as_high(const EnergyGrid& grid, double strength) const {
    return make_link(grid, -gap_ev + process.energy_ev, process.coupling * strength,
                     process.occupation, is_elastic(process.kind), root_mass);
  }
};

/// @param i   column @param at  index into the joined_count[valley] partners and processes of the
/// state
__device__ inline ColumnLink column_link(const DeviceProblem& p, const DevicePoint& q, int i,
                                         int state, int at) {
  const int valley = state / p.subbands;
  const JoinedProcess joined = p.joined[valley * p.most_joined + at];
  const int other_valley = joined.other / p.subbands;
  const int level = p.family_of[valley] * p.subbands + state % p.subbands;
  const int other_level = p.family_of[other_valley] * p.subbands + joined.other % p.subbands;
  const double gap_ev = q.energy[static_cast<long long>(level) * p.nx + i] + p.offset[valley] -
                        q.energy[static_cast<long long>(other_level) * p.nx + i] -
                        p.offset[other_valley];
  return {joined.other, level * p.n_levels + other_level, gap_ev, p.root_mass[other_valley],
          p.processes[joined.process]};
}

}  // namespace quasi::mosfet::cuda
