#include <algorithm>
#include <vector>

#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/roughness.hpp"
#include "workers/mosfet/physics/scattering_link.hpp"

namespace quasi::mosfet {
namespace {

// Computes all w of one state for one process and one partner. Weights are constant in the
// interior. The single low node whose Γ lies below the first node is added separately.
template <bool kBlocked, bool kSpectrum>
void add_process(const EnergyGrid& grid, const ScatteringLink& as_low,
                 const ScatteringLink& as_high, const LinkEnds& ends, GainLoss* sums) {
  const int nw = grid.nw;
  const LinkWeights low = inner_weights(as_low);
  for (int l = std::max(0, -as_low.shift); l < std::min(nw, nw - 1 - as_low.shift); ++l)
    add_as_low<kBlocked, kSpectrum>(grid, as_low, low, node_at(l), ends, &sums[l]);
  const int edge = -1 - as_low.shift;
  if (edge >= 0 && edge < nw && as_low.theta >= 0.5)
    add_as_low<kBlocked, kSpectrum>(grid, as_low, edge_weights(as_low), node_at(edge), ends,
                                    &sums[edge]);

  const int first = std::max(0, -as_high.shift), last = std::min(nw, nw - 1 - as_high.shift);
  for (int l = first; l < last; ++l)
    add_as_high<kBlocked, kSpectrum>(grid, as_high, {0, 1.0 - as_high.theta, as_high.feed_d},
                                     node_at(l), ends, &sums[l + as_high.shift]);
  for (int l = first; l < last; ++l)
    add_as_high<kBlocked, kSpectrum>(grid, as_high, {1, as_high.theta, as_high.feed_u}, node_at(l),
                                     ends, &sums[l + as_high.shift + 1]);
  const int below = -1 - as_high.shift;
  if (below >= 0 && below < nw && as_high.theta >= 0.5)
    add_as_high<kBlocked, kSpectrum>(grid, as_high, {1, 1.0, as_high.edge_u}, node_at(below), ends,
                                     &sums[0]);
}

using AddProcess = void (*)(const EnergyGrid&, const ScatteringLink&, const ScatteringLink&,
                            const LinkEnds&, GainLoss*);

AddProcess chosen(bool blocked, bool spectrum) {
  if (blocked) return spectrum ? add_process<true, true> : add_process<true, false>;
  return spectrum ? add_process<false, true> : add_process<false, false>;
}

/// F and, with blocking, r = f/(1−f) of every state of one column, [n_states][nw].
struct ColumnFilling {
  std::vector<double> filling, odds;
};

// Computes gain and loss of one state over all w of one column.
void rates_of_state(const TransportProblem& problem, const LevelCoupling& levels,
                    const ColumnFilling& column, int state, int i, GainLoss* sums) {
  const Structure& s = problem.structure;
  const EnergyGrid grid = problem.grid();
  const int np = s.subbands, nw = problem.nw, count = s.n_families() * np;
  const int valley = state / np;
  const int own_level = s.family_of[valley] * np + state % np;
  const double own_ev = levels.energy_ev[static_cast<std::int64_t>(own_level) * s.nx + i] +
                        s.valleys[valley].offset_ev;
  for (int l = 0; l < nw; ++l) sums[l] = {};
  for (int other = 0; other < problem.n_states(); ++other) {
    const int other_valley = other / np;
    const int level = s.family_of[other_valley] * np + other % np;
    const double other_ev = levels.energy_ev[static_cast<std::int64_t>(level) * s.nx + i] +
                            s.valleys[other_valley].offset_ev;
    const std::int64_t pair = (static_cast<std::int64_t>(own_level) * count + level) * s.nx + i;
    const double s_other = problem.root_mass[other_valley];
    const InterpolatedPartner partner{&column.filling[static_cast<std::size_t>(other) * nw],
                                      s_other};
    LinkEnds ends{.partner = partner.filling};
    if (problem.pauli) {
      ends.own_odds = &column.odds[static_cast<std::size_t>(state) * nw];
      ends.partner_odds = &column.odds[static_cast<std::size_t>(other) * nw];
    }
    for (const ScatteringProcess& process : problem.processes) {
      if (!joins(process.kind, valley, other_valley)) continue;
      const bool elastic = is_elastic(process.kind),
                 rough = process.kind == ProcessKind::kRoughness;
      const double coupling =
          process.coupling * (rough ? levels.roughness[pair] : levels.overlap[pair]);
      ends.spectrum =
          rough ? &problem.roughness_spectrum[static_cast<std::size_t>(valley) * nw * nw] : nullptr;
      if (problem.scheme == ScatteringScheme::kBalanced) {
        chosen(problem.pauli, rough)(grid,
                                     make_link(grid, own_ev - other_ev + process.energy_ev,
                                               coupling, process.occupation, elastic, s_other),
                                     make_link(grid, other_ev - own_ev + process.energy_ev,
                                               coupling, process.occupation, elastic, s_other),
                                     ends, sums);
        continue;
      }
      const double n = process.occupation, gap = (own_ev - other_ev) / grid.dw_ev;
      const double quantum = process.energy_ev / grid.dw_ev;
      for (int l = 0; l < nw; ++l) {
        if (elastic) {  // the stored coupling contains the ½ of an ordered pair
          add_interpolated(grid, l + gap, 2.0 * coupling, 2.0 * coupling, partner, &sums[l]);
          continue;
        }
        add_interpolated(grid, l + gap + quantum, coupling * (n + 1.0), coupling * n, partner,
                         &sums[l]);
        add_interpolated(grid, l + gap - quantum, coupling * n, coupling * (n + 1.0), partner,
                         &sums[l]);
      }
    }
  }
}

}  // namespace

void scattering_rates(const TransportProblem& problem, const LevelCoupling& levels,
                      double pdf_scale, const double* angle_sum, double* gain, double* loss) {
  const Structure& s = problem.structure;
  const int nx = s.nx, nw = problem.nw, n_states = problem.n_states();
  const EnergyGrid grid = problem.grid();
  const auto cells = static_cast<std::size_t>(n_states) * nw;
#pragma omp parallel
  {
    std::vector<GainLoss> sums(static_cast<std::size_t>(nw));
    ColumnFilling column{std::vector<double>(cells),
                         std::vector<double>(problem.pauli ? cells : 0)};
#pragma omp for schedule(static)
    for (int i = 0; i < nx; ++i) {
      for (int state = 0; state < n_states; ++state) {
        const double full = problem.full_filling(state / s.subbands, pdf_scale);
        for (int l = 0; l < nw; ++l) {
          const std::size_t at = static_cast<std::size_t>(state) * nw + l;
          column.filling[at] =
              angle_sum[(static_cast<std::int64_t>(state) * nx + i) * nw + l] / grid.kane(l);
          if (problem.pauli) column.odds[at] = odds_of(column.filling[at], full);
        }
      }
      for (int state = 0; state < n_states; ++state) {
        const int valley = state / s.subbands;
        const double full = problem.full_filling(valley, pdf_scale);
        rates_of_state(problem, levels, column, state, i, sums.data());
        for (int l = 0; l < nw; ++l) {
          const std::int64_t at = (static_cast<std::int64_t>(state) * nx + i) * nw + l;
          const GainLoss& sum = sums[static_cast<std::size_t>(l)];
          const double s_own = problem.root_mass[valley];
          gain[at] = sum.gain(grid.kane(l), s_own);
          const double filling = column.filling[static_cast<std::size_t>(state) * nw + l];
          loss[at] = problem.pauli
                         ? sum.blocked_loss(grid.kane(l), s_own, capacity_of(filling, full))
                         : sum.loss(grid.kane(l));
          if (problem.elastic_rate_fs.empty()) continue;
          // Relaxation to the angular mean at the same w. Blocking cancels, because f(1−f') −
          // f'(1−f) = f − f'.
          const double rate =
              problem.elastic_rate_fs[(static_cast<std::size_t>(valley) * nx + i) * nw + l];
          gain[at] += rate * angle_sum[at] / (2.0 * units::kPi);
          loss[at] += rate;
        }
      }
    }
  }
}

void overlaps(const TransportProblem& problem, const double* psi, double* overlap_per_nm) {
  const Structure& s = problem.structure;
  const int count = s.n_families() * s.subbands;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < s.nx; ++i)
    for (int p = 0; p < count; ++p)
      for (int q = p; q < count; ++q) {
        const double* a = psi + (static_cast<std::int64_t>(p) * s.nx + i) * s.nz;
        const double* b = psi + (static_cast<std::int64_t>(q) * s.nx + i) * s.nz;
        double sum = 0.0;
        for (int j = 1; j < s.nz - 1; ++j) sum += a[j] * a[j] * b[j] * b[j];
        overlap_per_nm[(static_cast<std::int64_t>(p) * count + q) * s.nx + i] = sum * s.dz_nm;
        overlap_per_nm[(static_cast<std::int64_t>(q) * count + p) * s.nx + i] = sum * s.dz_nm;
      }
}

void roughness_strengths(const TransportProblem& problem, const double* psi, double* strength) {
  const Structure& s = problem.structure;
  const int count = s.n_families() * s.subbands;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < s.nx; ++i)
    for (int p = 0; p < count; ++p)
      for (int q = 0; q < count; ++q) {
        const int family = p / s.subbands;
        const double* a = psi + (static_cast<std::int64_t>(p) * s.nx + i) * s.nz;
        const double* b = psi + (static_cast<std::int64_t>(q) * s.nx + i) * s.nz;
        strength[(static_cast<std::int64_t>(p) * count + q) * s.nx + i] =
            family != q / s.subbands
                ? 0.0
                : roughness_strength(a, b, s.silicon_first, s.silicon_last, s.dz_nm,
                                     s.families[static_cast<std::size_t>(family)].mz_m0);
      }
}

}  // namespace quasi::mosfet
