#include "workers/mosfet/kernels/beam/beam_scattering.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quasi::mosfet {

BeamScattering::BeamScattering(const BeamGeometry& geometry, const BeamLevels& levels,
                               const std::vector<ScatteringProcess>& processes,
                               const std::vector<double>& overlap, const std::vector<int>& level_of,
                               std::vector<double> filling)
    : geometry_(geometry),
      processes_(static_cast<int>(processes.size())),
      overlap_(overlap),
      filling_(std::move(filling)) {
  const BeamGrid& grid = geometry.grid;
  const int nx = grid.nx, nk = grid.n_h, nj = grid.n_kappa, ns = geometry.n_states;
  int n_levels = 0;
  for (const int level : level_of) n_levels = std::max(n_levels, level + 1);
  states_.assign(static_cast<std::size_t>(ns) * nx * nk, 0.0);
  for (std::size_t cell = 0; cell < states_.size(); ++cell)
    for (int j = 0; j < nj; ++j) states_[cell] += 2.0 * geometry.volume[cell * nj + j];
  for (int k = 0; k < nk; ++k) inverse_full_.push_back(1.0 / grid.cell(k, 0).full_ev);
  for (int process = 0; process < processes_; ++process)
    for (int low = 0; low < ns; ++low)
      for (int high = 0; high < ns; ++high)
        if (joins(processes[static_cast<std::size_t>(process)].kind, low / levels.subbands,
                  high / levels.subbands))
          add_links(processes[static_cast<std::size_t>(process)], process, low, high,
                    level_of[static_cast<std::size_t>(low)] * n_levels +
                        level_of[static_cast<std::size_t>(high)]);
  loss_.assign(states_.size(), 0.0);
  if (!filling_.empty()) source_.assign(states_.size(), 0.0);
  for (const Link& link : links_)
    for (int i = 0; i < nx; ++i)
      for (int k = 0; k + link.shift < nk; ++k) {
        const auto low = static_cast<std::size_t>(row(link.low, i) + k),
                   high = static_cast<std::size_t>(row(link.high, i) + k + link.shift);
        const LinkRates each = rates(link, i, k);
        loss_[low] += each.low * factor_of_low(link, high);
        loss_[high] += each.high * factor_of_high(link, low);
        if (!source_.empty()) add_source(link, each, k, low, high);
      }
}

// Adds the quadratic term (e−1) f_low f_high of a link, evaluated at the filling.
void BeamScattering::add_source(const Link& link, const LinkRates& each, int k, std::size_t low,
                                std::size_t high) {
  const BeamGrid& grid = geometry_.grid;
  const double both = filling_[low] * filling_[high];
  source_[low] += each.low * (link.rise - 1.0) * both / grid.boltzmann(k);
  source_[high] -= each.high * (1.0 - 1.0 / link.rise) * both / grid.boltzmann(k + link.shift);
}

void BeamScattering::add_links(const ScatteringProcess& process, int index, int low, int high,
                               int overlap) {
  if (is_elastic(process.kind)) {
    links_.push_back({low, high, index, 0, process.coupling, overlap, 1.0});
    return;
  }
  const double cells = process.energy_ev / geometry_.grid.dh_ev, whole = std::floor(cells);
  const double strength = process.coupling * process.occupation, upper = cells - whole;
  const int shift = static_cast<int>(whole);
  const auto add = [&](int cells_up, double share) {
    const double rise = std::exp(cells_up * geometry_.grid.dh_ev / geometry_.grid.shape.kt_ev);
    if (share > 0.0)
      links_.push_back({low, high, index, cells_up, strength * share, overlap, rise});
  };
  add(shift, 1.0 - upper);
  add(shift + 1, upper);
}

BeamScattering::LinkRates BeamScattering::rates(const Link& link, int i, int k) const {
  const BeamGrid& grid = geometry_.grid;
  const int h = k + link.shift;
  const double below = states_[static_cast<std::size_t>(row(link.low, i) + k)],
               above = states_[static_cast<std::size_t>(row(link.high, i) + h)];
  if (!(below > 0.0 && above > 0.0)) return {};
  const double rate = link.strength *
                      overlap_[static_cast<std::size_t>(link.overlap) * grid.nx + i] *
                      inverse_full_[static_cast<std::size_t>(h)];
  return {rate * geometry_.states_factor[static_cast<std::size_t>(link.high)] * above,
          rate * geometry_.states_factor[static_cast<std::size_t>(link.low)] * below * link.rise};
}

std::vector<double> BeamScattering::mean(const std::vector<double>& g) const {
  const int nj = geometry_.grid.n_kappa;
  const std::size_t branch = g.size() / 2;
  std::vector<double> out(states_.size(), 0.0);
#pragma omp parallel for schedule(static)
  for (std::size_t cell = 0; cell < out.size(); ++cell) {
    double sum = 0.0;
    for (int j = 0; j < nj; ++j)
      sum += geometry_.volume[cell * nj + j] * (g[cell * nj + j] + g[branch + cell * nj + j]);
    if (states_[cell] > 0.0) out[cell] = sum / states_[cell];
  }
  return out;
}

std::vector<double> BeamScattering::gain(const std::vector<double>& mean) const {
  const BeamGrid& grid = geometry_.grid;
  std::vector<double> out(mean.size(), 0.0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < grid.nx; ++i)
    for (const Link& link : links_)
      for (int k = 0; k + link.shift < grid.n_h; ++k) {
        const auto low = static_cast<std::size_t>(row(link.low, i) + k),
                   high = static_cast<std::size_t>(row(link.high, i) + k + link.shift);
        const LinkRates each = rates(link, i, k);
        out[low] += each.low * factor_of_high(link, low) * mean[high];
        out[high] += each.high * factor_of_low(link, high) * mean[low];
      }
  return out;
}

template <typename Action>
void BeamScattering::for_each_transfer(const std::vector<double>& mean,
                                       const Action& action) const {
  const BeamGrid& grid = geometry_.grid;
  for (const Link& link : links_)
    for (int i = 0; i < grid.nx; ++i)
      for (int k = 0; k + link.shift < grid.n_h; ++k) {
        const auto low = static_cast<std::size_t>(row(link.low, i) + k),
                   high = static_cast<std::size_t>(row(link.high, i) + k + link.shift);
        const double transfer = geometry_.density_factor[static_cast<std::size_t>(link.low)] *
                                states_[low] * rates(link, i, k).low * grid.boltzmann(k);
        const double f_low = filling_.empty() ? 0.0 : mean[low] * grid.boltzmann(k);
        const double f_high = filling_.empty() ? 0.0 : mean[high] * grid.boltzmann(k + link.shift);
        action(link, i, low, high, transfer * mean[low] * (1.0 - f_high),
               transfer * mean[high] * (1.0 - f_low));
      }
}

std::vector<double> BeamScattering::phonon_power(const std::vector<double>& mean) const {
  const BeamGrid& grid = geometry_.grid;
  std::vector<double> power(static_cast<std::size_t>(processes_) * grid.nx, 0.0);
  for_each_transfer(
      mean, [&](const Link& link, int i, std::size_t, std::size_t, double rises, double falls) {
        power[static_cast<std::size_t>(link.process) * grid.nx + i] +=
            (falls - rises) * link.shift * grid.dh_ev;
      });
  return power;
}

std::vector<double> BeamScattering::emission_power(const std::vector<double>& mean) const {
  const BeamGrid& grid = geometry_.grid;
  std::vector<double> power(static_cast<std::size_t>(processes_) * grid.nx, 0.0);
  for_each_transfer(mean, [&](const Link& link, int i, std::size_t, std::size_t, double,
                              double falls) {
    power[static_cast<std::size_t>(link.process) * grid.nx + i] += falls * link.shift * grid.dh_ev;
  });
  return power;
}

std::vector<double> BeamScattering::net_number(const std::vector<double>& mean) const {
  std::vector<double> net(mean.size(), 0.0);
  for_each_transfer(
      mean, [&](const Link&, int, std::size_t low, std::size_t high, double rises, double falls) {
        net[low] += falls - rises;
        net[high] += rises - falls;
      });
  return net;
}

}  // namespace quasi::mosfet
