#include "workers/mosfet/kernels/beam/beam_scattering.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quasi::mosfet {
namespace {

// Adds the links of one process between two states: an elastic one, or one to each of the two cells
// around H + ħω.
void add_links(const BeamGrid& grid, const ScatteringProcess& process, const BeamLink& link,
               std::vector<BeamLink>* links) {
  BeamLink added = link;
  added.strength = process.coupling;
  added.rough = process.kind == ProcessKind::kRoughness;
  if (is_elastic(process.kind)) return links->push_back(added);
  const double cells = process.energy_ev / grid.dh_ev, whole = std::floor(cells);
  const double upper = cells - whole;
  for (const int up : {0, 1}) {
    const double share = up == 0 ? 1.0 - upper : upper;
    if (!(share > 0.0)) continue;
    added.shift = static_cast<int>(whole) + up;
    added.strength = process.coupling * process.occupation * share;
    added.rise = std::exp(added.shift * grid.dh_ev / grid.shape.kt_ev);
    links->push_back(added);
  }
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(a);
  for (std::size_t at = 0; at < out.size(); ++at) out[at] *= b[at];
  return out;
}

}  // namespace

std::vector<BeamLink> make_beam_links(const BeamGrid& grid, int n_states, int subbands,
                                      const std::vector<ScatteringProcess>& processes,
                                      const std::vector<int>& level_of) {
  int n_levels = 0;
  for (const int level : level_of) n_levels = std::max(n_levels, level + 1);
  std::vector<BeamLink> links;
  for (int process = 0; process < static_cast<int>(processes.size()); ++process)
    for (int low = 0; low < n_states; ++low)
      for (int high = 0; high < n_states; ++high) {
        const ScatteringProcess& one = processes[static_cast<std::size_t>(process)];
        if (!joins(one.kind, low / subbands, high / subbands)) continue;
        const int overlap = level_of[static_cast<std::size_t>(low)] * n_levels +
                            level_of[static_cast<std::size_t>(high)];
        add_links(grid, one, {.low = low, .high = high, .process = process, .overlap = overlap},
                  &links);
      }
  return links;
}

BeamScattering::BeamScattering(const BeamGeometry& geometry, const BeamLevels& levels,
                               const std::vector<ScatteringProcess>& processes,
                               const std::vector<double>& overlap, const std::vector<int>& level_of,
                               BeamCellTables cells)
    : geometry_(geometry),
      processes_(static_cast<int>(processes.size())),
      subbands_(levels.subbands),
      links_(
          make_beam_links(geometry.grid, geometry.n_states, levels.subbands, processes, level_of)),
      sums_(geometry.grid, levels.subbands, processes, level_of),
      overlap_(overlap),
      cells_(std::move(cells)) {
  const BeamGrid& grid = geometry.grid;
  const int nx = grid.nx, nk = grid.n_h, nj = grid.n_kappa, ns = geometry.n_states;
  states_.assign(static_cast<std::size_t>(ns) * nx * nk, 0.0);
  for (std::size_t cell = 0; cell < states_.size(); ++cell)
    for (int j = 0; j < nj; ++j) states_[cell] += 2.0 * geometry.volume[cell * nj + j];
  for (int k = 0; k < nk; ++k) inverse_full_.push_back(1.0 / grid.cell(k, 0).full_ev);
  using Weight = ScatteringSums::Weight;
  loss_ = sum(Weight::kRate, {});
  for (std::size_t cell = 0; cell < cells_.relaxation_fs.size(); ++cell)
    loss_[cell] += cells_.relaxation_fs[cell];
  if (!blocks()) return;
  // Newton's linearisation of f_low (1 − f_high) − e f_high (1 − f_low) around the filling F
  // has the factor 1 + (e−1) F_high of f_low, the factor 1 − (1−1/e) F_low of e f_high, and
  // the source (e−1) F_low F_high.
  source_ = sum(Weight::kFilled, cells_.filling);
  for (std::size_t cell = 0; cell < loss_.size(); ++cell) {
    loss_[cell] += source_[cell];
    source_[cell] *= cells_.filling[cell] / grid.boltzmann(static_cast<int>(cell % nk));
  }
}

std::vector<double> BeamScattering::sum(ScatteringSums::Weight weight,
                                        const std::vector<double>& values) const {
  const std::size_t column = static_cast<std::size_t>(geometry_.grid.nx) * geometry_.grid.n_h;
  std::vector<double> open(states_);
  for (std::size_t cell = 0; cell < open.size(); ++cell) {
    open[cell] *= geometry_.states_factor[cell / column];
    if (!values.empty()) open[cell] *= values[cell];
  }
  std::vector<double> out = sums_.sum(weight, {overlap_, cells_.roughness}, open);
  for (std::size_t cell = 0; cell < out.size(); ++cell)
    if (!(states_[cell] > 0.0)) out[cell] = 0.0;
  return out;
}

std::vector<double> BeamScattering::transposed_sum(ScatteringSums::Weight weight,
                                                   std::vector<double> values) const {
  const std::size_t column = static_cast<std::size_t>(geometry_.grid.nx) * geometry_.grid.n_h;
  for (std::size_t cell = 0; cell < values.size(); ++cell)
    if (!(states_[cell] > 0.0)) values[cell] = 0.0;
  std::vector<double> out = sums_.sum(weight, {overlap_, cells_.roughness}, values, true);
  for (std::size_t cell = 0; cell < out.size(); ++cell)
    out[cell] *= states_[cell] * geometry_.states_factor[cell / column];
  return out;
}

double BeamScattering::electrons_at(std::size_t cell) const {
  const BeamGrid& grid = geometry_.grid;
  return geometry_.density_factor[cell / grid.n_h / grid.nx] * states_[cell] *
         grid.boltzmann(static_cast<int>(cell % grid.n_h));
}

double BeamScattering::coupling(const BeamLink& link, int i, int k) const {
  const BeamGrid& grid = geometry_.grid;
  if (!link.rough) return overlap_[static_cast<std::size_t>(link.overlap) * grid.nx + i];
  return cells_.roughness[rough_index(link, i, k)];
}

BeamScattering::LinkRates BeamScattering::rates(const BeamLink& link, int i, int k) const {
  const int h = k + link.shift;
  const double below = states_[static_cast<std::size_t>(row(link.low, i) + k)],
               above = states_[static_cast<std::size_t>(row(link.high, i) + h)];
  if (!(below > 0.0 && above > 0.0)) return {};
  const double rate =
      link.strength * coupling(link, i, k) * inverse_full_[static_cast<std::size_t>(h)];
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
  std::vector<double> out = sum(ScatteringSums::Weight::kRate, mean);
  for (std::size_t cell = 0; cell < cells_.relaxation_fs.size(); ++cell)
    out[cell] += cells_.relaxation_fs[cell] * mean[cell];
  if (!blocks()) return out;
  const std::vector<double> freed = sum(ScatteringSums::Weight::kFreed, mean);
  for (std::size_t cell = 0; cell < out.size(); ++cell)
    out[cell] += cells_.filling[cell] * freed[cell];
  return out;
}

std::vector<double> BeamScattering::transposed_gain(const std::vector<double>& psi,
                                                    const std::vector<double>& uneven) const {
  if (!blocks()) return gain(psi);
  using Weight = ScatteringSums::Weight;
  std::vector<double> electrons(states_.size()), even(psi), spread(uneven);
  for (std::size_t cell = 0; cell < electrons.size(); ++cell) {
    electrons[cell] = electrons_at(cell);
    even[cell] *= electrons[cell];
    spread[cell] *= electrons[cell];
  }
  std::vector<double> out = transposed_sum(Weight::kRate, even);
  const std::vector<double> blocked = transposed_sum(Weight::kBlocked, spread),
                            freed = transposed_sum(Weight::kFreed, product(cells_.filling, even));
  for (std::size_t cell = 0; cell < out.size(); ++cell) {
    if (!(electrons[cell] > 0.0)) continue;
    out[cell] = (out[cell] + blocked[cell] + freed[cell]) / electrons[cell];
    if (!cells_.relaxation_fs.empty()) out[cell] += cells_.relaxation_fs[cell] * psi[cell];
  }
  return out;
}

std::vector<double> BeamScattering::blocked_loss(const std::vector<double>& mean) const {
  return sum(ScatteringSums::Weight::kBlocked, mean);
}

template <typename Action>
void BeamScattering::for_each_link(const Action& action) const {
  const BeamGrid& grid = geometry_.grid;
  for (const BeamLink& link : links_)
    for (int i = 0; i < grid.nx; ++i)
      for (int k = 0; k + link.shift < grid.n_h; ++k) {
        const auto low = static_cast<std::size_t>(row(link.low, i) + k),
                   high = static_cast<std::size_t>(row(link.high, i) + k + link.shift);
        const double transfer = geometry_.density_factor[static_cast<std::size_t>(link.low)] *
                                states_[low] * rates(link, i, k).low * grid.boltzmann(k);
        action(link, i, k, low, high, transfer);
      }
}

template <typename Action>
void BeamScattering::for_each_transfer(const std::vector<double>& mean,
                                       const Action& action) const {
  const BeamGrid& grid = geometry_.grid;
  for_each_link(
      [&](const BeamLink& link, int i, int k, std::size_t low, std::size_t high, double transfer) {
        const double f_low = blocks() ? mean[low] * grid.boltzmann(k) : 0.0;
        const double f_high = blocks() ? mean[high] * grid.boltzmann(k + link.shift) : 0.0;
        action(link, i, low, high, transfer * mean[low] * (1.0 - f_high),
               transfer * mean[high] * (1.0 - f_low));
      });
}

std::vector<double> BeamScattering::phonon_power(const std::vector<double>& mean) const {
  const BeamGrid& grid = geometry_.grid;
  std::vector<double> power(static_cast<std::size_t>(processes_) * grid.nx, 0.0);
  for_each_transfer(
      mean, [&](const BeamLink& link, int i, std::size_t, std::size_t, double rises, double falls) {
        power[static_cast<std::size_t>(link.process) * grid.nx + i] +=
            (falls - rises) * link.shift * grid.dh_ev;
      });
  return power;
}

std::vector<double> BeamScattering::emission_power(const std::vector<double>& mean) const {
  const BeamGrid& grid = geometry_.grid;
  std::vector<double> power(static_cast<std::size_t>(processes_) * grid.nx, 0.0);
  for_each_transfer(mean, [&](const BeamLink& link, int i, std::size_t, std::size_t, double,
                              double falls) {
    power[static_cast<std::size_t>(link.process) * grid.nx + i] += falls * link.shift * grid.dh_ev;
  });
  return power;
}

std::vector<double> BeamScattering::net_number(const std::vector<double>& mean) const {
  std::vector<double> net(mean.size(), 0.0);
  for_each_transfer(mean, [&](const BeamLink&, int, std::size_t low, std::size_t high, double rises,
                              double falls) {
    net[low] += falls - rises;
    net[high] += rises - falls;
  });
  return net;
}

double BeamScattering::noise(const std::vector<double>& g, const std::vector<double>& a,
                             const std::vector<double>& b) const {
  const BeamGrid& grid = geometry_.grid;
  const std::vector<double> both = product(a, b);
  const std::vector<double> leaving = mean(g), leaving_a = mean(product(g, a)),
                            leaving_b = mean(product(g, b)), leaving_both = mean(product(g, both)),
                            arriving_a = mean(a), arriving_b = mean(b), arriving_both = mean(both);
  const auto moved = [&](std::size_t from, std::size_t to) {
    return leaving_both[from] + leaving[from] * arriving_both[to] -
           leaving_a[from] * arriving_b[to] - leaving_b[from] * arriving_a[to];
  };
  const auto empty = [&](std::size_t cell) {
    return grid.shape.fermi
               ? 1.0 - leaving[cell] * grid.boltzmann(static_cast<int>(cell % grid.n_h))
               : 1.0;
  };
  double sum = 0.0;
  for_each_link([&](const BeamLink&, int, int, std::size_t low, std::size_t high, double transfer) {
    sum += transfer * (empty(high) * moved(low, high) + empty(low) * moved(high, low));
  });
  for (std::size_t cell = 0; cell < cells_.relaxation_fs.size(); ++cell)
    sum += electrons_at(cell) * cells_.relaxation_fs[cell] * empty(cell) * moved(cell, cell);
  return sum;
}

// With e = e^{(H_h−H_k)/kT} the low end gains ḡ_h and loses g (1 + (e−1) f̄_h) per transfer,
// and the high end gains ḡ_l and loses g (1 − (1−1/e) f̄_l).
BeamScattering::CouplingSlopes BeamScattering::coupling_slopes(
    const std::vector<double>& g, const std::vector<double>& psi) const {
  const BeamGrid& grid = geometry_.grid;
  const std::vector<double> held = mean(g), weight = mean(psi), leaving = mean(product(g, psi));
  CouplingSlopes slopes{std::vector<double>(overlap_.size(), 0.0),
                        std::vector<double>(cells_.roughness.size(), 0.0)};
  for_each_link(
      [&](const BeamLink& link, int i, int k, std::size_t low, std::size_t high, double transfer) {
        const double matrix_element = coupling(link, i, k);
        if (!(matrix_element > 0.0)) return;
        const double f_low = blocks() ? held[low] * grid.boltzmann(k) : 0.0,
                     f_high = blocks() ? held[high] * grid.boltzmann(k + link.shift) : 0.0;
        const double from_low = leaving[low] * (1.0 + (link.rise - 1.0) * f_high),
                     from_high = leaving[high] * (1.0 - (1.0 - 1.0 / link.rise) * f_low);
        const double slope =
            transfer / matrix_element *
            (weight[low] * held[high] - from_low + weight[high] * held[low] - from_high);
        if (link.rough)
          slopes.roughness[rough_index(link, i, k)] += slope;
        else
          slopes.overlap[static_cast<std::size_t>(link.overlap) * grid.nx + i] += slope;
      });
  return slopes;
}

}  // namespace quasi::mosfet
