#include <algorithm>
#include <vector>

#include "workers/mosfet/kernels/transport_cpu.hpp"
#include "workers/mosfet/physics/scattering_link.hpp"

namespace quasi::mosfet {
namespace {

/// True if a process of this kind joins the pairs ν and ν'.
bool joins(ProcessKind kind, int valley, int other) {
  return (kind == ProcessKind::kF) != (valley == other);
}

// All w of one state for one process and one partner. Interiors have constant weights; the one low
// node whose Γ lies below the first node is added apart.
void add_process(const EnergyGrid& grid, const ScatteringLink& as_low, const ScatteringLink& as_high,
                 const double* partner, double s_own, double s_other, GainLoss* sums) {
  const int nw = grid.nw;
  const LinkWeights low{1.0 - as_low.theta, as_low.theta};
  for (int l = std::max(0, -as_low.shift); l < std::min(nw, nw - 1 - as_low.shift); ++l)
    add_as_low(grid, as_low, low, l, partner, s_own, s_other, &sums[l]);
  const int edge = -1 - as_low.shift;
  if (edge >= 0 && edge < nw && as_low.theta >= 0.5)
    add_as_low(grid, as_low, {0.0, 1.0}, edge, partner, s_own, s_other, &sums[edge]);

  const int first = std::max(0, -as_high.shift), last = std::min(nw, nw - 1 - as_high.shift);
  for (int l = first; l < last; ++l)
    add_as_high(grid, as_high, 0, 1.0 - as_high.theta, l, partner, s_own, s_other, &sums[l + as_high.shift]);
  for (int l = first; l < last; ++l)
    add_as_high(grid, as_high, 1, as_high.theta, l, partner, s_own, s_other, &sums[l + as_high.shift + 1]);
  const int below = -1 - as_high.shift;
  if (below >= 0 && below < nw && as_high.theta >= 0.5)
    add_as_high(grid, as_high, 1, 1.0, below, partner, s_own, s_other, &sums[0]);
}

// One state's gain and loss over all w of one column.
void rates_of_state(const TransportProblem& problem, const double* energy_ev, const double* overlap,
                    const double* filling, int state, int i, GainLoss* sums) {
  const Structure& s = problem.structure;
  const EnergyGrid grid = problem.grid();
  const int np = s.subbands, nw = problem.nw, levels = s.n_families() * np;
  const int valley = state / np;
  const int own_level = s.family_of[valley] * np + state % np;
  const double own_ev = energy_ev[static_cast<std::int64_t>(own_level) * s.nx + i] + s.valleys[valley].offset_ev;
  for (int l = 0; l < nw; ++l) sums[l] = {};
  for (int other = 0; other < problem.n_states(); ++other) {
    const int other_valley = other / np;
    const int level = s.family_of[other_valley] * np + other % np;
    const double other_ev = energy_ev[static_cast<std::int64_t>(level) * s.nx + i] + s.valleys[other_valley].offset_ev;
    const double w = overlap[(static_cast<std::int64_t>(own_level) * levels + level) * s.nx + i];
    const double* partner = filling + static_cast<std::int64_t>(other) * nw;
    const double s_own = problem.root_mass[valley], s_other = problem.root_mass[other_valley];
    for (const ScatteringProcess& process : problem.processes) {
      if (!joins(process.kind, valley, other_valley)) continue;
      const bool elastic = process.kind == ProcessKind::kElastic;
      const double coupling = process.coupling * w;
      if (problem.scheme == ScatteringScheme::kBalanced) {
        add_process(grid,
                    make_link(grid, own_ev - other_ev + process.energy_ev, coupling, process.occupation, elastic),
                    make_link(grid, other_ev - own_ev + process.energy_ev, coupling, process.occupation, elastic),
                    partner, s_own, s_other, sums);
        continue;
      }
      const double n = process.occupation, gap = (own_ev - other_ev) / grid.dw_ev;
      const double quantum = process.energy_ev / grid.dw_ev;
      for (int l = 0; l < nw; ++l) {
        if (elastic) {  // The stored coupling carries the ½ of an ordered pair.
          add_interpolated(grid, l + gap, l, 2.0 * coupling, 2.0 * coupling, partner, s_own, s_other, &sums[l]);
          continue;
        }
        add_interpolated(grid, l + gap + quantum, l, coupling * (n + 1.0), coupling * n, partner, s_own, s_other,
                         &sums[l]);
        add_interpolated(grid, l + gap - quantum, l, coupling * n, coupling * (n + 1.0), partner, s_own, s_other,
                         &sums[l]);
      }
    }
  }
}

}  // namespace

void scattering_rates(const TransportProblem& problem, const double* energy_ev,
                      const double* overlap, const double* angle_sum, double* gain, double* loss) {
  const int nx = problem.structure.nx, nw = problem.nw;
  const int n_states = problem.n_states();
  const EnergyGrid grid = problem.grid();
#pragma omp parallel
  {
    std::vector<GainLoss> sums(static_cast<std::size_t>(nw));
    std::vector<double> filling(static_cast<std::size_t>(n_states) * nw);
#pragma omp for schedule(static)
    for (int i = 0; i < nx; ++i) {
      for (int state = 0; state < n_states; ++state)
        for (int l = 0; l < nw; ++l)
          filling[static_cast<std::size_t>(state) * nw + l] =
              angle_sum[(static_cast<std::int64_t>(state) * nx + i) * nw + l] / grid.kane(l);
      for (int state = 0; state < n_states; ++state) {
        rates_of_state(problem, energy_ev, overlap, filling.data(), state, i, sums.data());
        for (int l = 0; l < nw; ++l) {
          const std::int64_t at = (static_cast<std::int64_t>(state) * nx + i) * nw + l;
          gain[at] = sums[static_cast<std::size_t>(l)].gain;
          loss[at] = sums[static_cast<std::size_t>(l)].loss(grid.kane(l));
        }
      }
    }
  }
}

}  // namespace quasi::mosfet
