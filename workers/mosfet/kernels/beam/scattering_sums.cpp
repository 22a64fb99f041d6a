#include "workers/mosfet/kernels/beam/scattering_sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quasi::mosfet {
namespace {

void add_scaled(int count, const double* x, double factor, double* to) {
  for (int k = 0; k < count; ++k) to[k] += factor * x[k];
}

}  // namespace

ScatteringSums::ScatteringSums(const BeamGrid& grid, int subbands,
                               const std::vector<ScatteringProcess>& processes,
                               std::vector<int> level_of)
    : grid_(grid), subbands_(subbands), level_of_(std::move(level_of)) {
  for (const int level : level_of_) n_levels_ = std::max(n_levels_, level + 1);
  for (const ScatteringProcess& process : processes) add_branches(process);
  for (int k = 0; k < grid.n_h; ++k) {
    inverse_full_.push_back(1.0 / grid.cell(k, 0).full_ev);
    boltzmann_.push_back(grid.boltzmann(k));
  }
}

// Adds an elastic process, or the two cells around H + ħω, as make_beam_links() does.
void ScatteringSums::add_branches(const ScatteringProcess& process) {
  const Pairs pairs = process.kind == ProcessKind::kRoughness ? kRough
                      : process.kind == ProcessKind::kF       ? kOther
                                                              : kSame;
  if (is_elastic(process.kind)) {
    branches_[pairs].push_back({.strength = process.coupling});
    return;
  }
  const double cells = process.energy_ev / grid_.dh_ev, whole = std::floor(cells);
  for (const int up : {0, 1}) {
    const double share = up == 0 ? 1.0 - (cells - whole) : cells - whole;
    const int shift = static_cast<int>(whole) + up;
    if (!(share > 0.0)) continue;
    branches_[pairs].push_back({.shift = shift,
                                .strength = process.coupling * process.occupation * share,
                                .rise = std::exp(shift * grid_.dh_ev / grid_.shape.kt_ev)});
  }
}

void ScatteringSums::sum_partners(Pairs pairs, const ScatteringCouplings& couplings, int i,
                                  Column* column) const {
  const int states = static_cast<int>(level_of_.size()), nk = grid_.n_h;
  const auto nx = static_cast<std::size_t>(grid_.nx);
  std::fill(column->low.begin(), column->low.end(), 0.0);
  std::fill(column->high.begin(), column->high.end(), 0.0);
  for (int low = 0; low < states; ++low)
    for (int high = 0; high < states; ++high) {
      if ((pairs == kOther) != (low / subbands_ != high / subbands_)) continue;
      double* to_low = &column->low[static_cast<std::size_t>(low) * nk];
      double* to_high = &column->high[static_cast<std::size_t>(high) * nk];
      const double* of_low = &column->x[static_cast<std::size_t>(low) * nk];
      const double* of_high = &column->x[static_cast<std::size_t>(high) * nk];
      if (pairs == kRough) {
        const auto pair = static_cast<std::size_t>(low) * subbands_ + high % subbands_;
        const double* rough = &couplings.roughness[(pair * nx + static_cast<std::size_t>(i)) * nk];
        for (int k = 0; k < nk; ++k) {
          to_low[k] += rough[k] * of_high[k];
          to_high[k] += rough[k] * of_low[k];
        }
        continue;
      }
      const auto pair =
          static_cast<std::size_t>(level_of_[static_cast<std::size_t>(low)]) * n_levels_ +
          level_of_[static_cast<std::size_t>(high)];
      const double overlap = couplings.overlap[pair * nx + static_cast<std::size_t>(i)];
      add_scaled(nk, of_high, overlap, to_low);
      add_scaled(nk, of_low, overlap, to_high);
    }
}

ScatteringSums::LinkFactors ScatteringSums::factors_of(Weight weight, const Branch& branch) const {
  const int nk = grid_.n_h, shift = branch.shift;
  const double rise = branch.rise, more = rise - 1.0;
  LinkFactors factors;
  for (int k = 0; k + shift < nk; ++k) {
    const double c = branch.strength * inverse_full_[static_cast<std::size_t>(k + shift)];
    double low = c, high = c * rise;
    if (weight == Weight::kFreed) {
      low = -c * more / rise;
      high = c * rise * more;
    } else if (weight == Weight::kFilled) {
      low = c * more;
      high = -low;
    } else if (weight == Weight::kBlocked) {
      low = c * more * boltzmann_[static_cast<std::size_t>(k + shift)];
      high = -c * more * boltzmann_[static_cast<std::size_t>(k)];
    }
    factors.low.push_back(low);
    factors.high.push_back(high);
  }
  return factors;
}

void ScatteringSums::add_branch(const LinkFactors& factors, int shift, int i, const Column& column,
                                std::vector<double>* out) const {
  const int nk = grid_.n_h, count = static_cast<int>(factors.low.size());
  for (std::size_t state = 0; state < level_of_.size(); ++state) {
    double* cell = &(*out)[(state * grid_.nx + static_cast<std::size_t>(i)) * nk];
    const double* low = &column.low[state * nk];
    const double* high = &column.high[state * nk];
    for (int k = 0; k < count; ++k)
      cell[k] += factors.low[static_cast<std::size_t>(k)] * low[k + shift];
    for (int k = 0; k < count; ++k)
      cell[k + shift] += factors.high[static_cast<std::size_t>(k)] * high[k];
  }
}

std::vector<double> ScatteringSums::sum(Weight weight, const ScatteringCouplings& couplings,
                                        const std::vector<double>& x, bool transposed) const {
  const std::size_t states = level_of_.size(), nk = static_cast<std::size_t>(grid_.n_h);
  std::vector<double> out(x.size(), 0.0);
#pragma omp parallel
  {
    Column column;
    column.x.resize(states * nk);
    column.low = column.high = column.x;
#pragma omp for schedule(static)
    for (int i = 0; i < grid_.nx; ++i) {
      for (std::size_t state = 0; state < states; ++state)
        std::copy_n(&x[(state * grid_.nx + static_cast<std::size_t>(i)) * nk], nk,
                    &column.x[state * nk]);
      for (const Pairs pairs : {kSame, kOther, kRough}) {
        if (branches_[pairs].empty()) continue;
        sum_partners(pairs, couplings, i, &column);
        for (const Branch& branch : branches_[pairs]) {
          LinkFactors factors = factors_of(weight, branch);
          if (transposed) std::swap(factors.low, factors.high);
          add_branch(factors, branch.shift, i, column, &out);
        }
      }
    }
  }
  return out;
}

}  // namespace quasi::mosfet
