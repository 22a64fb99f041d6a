#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/electrostatics/largest_magnitude.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kStep_v = 1e-4, kShareOfStep = 1e-2;
constexpr double kTolerance = 1e-13;
constexpr int kMaxSweeps = 400;
constexpr double kValleys = 2.0;

std::vector<double> difference(const std::vector<double>& high, const std::vector<double>& low,
                               double width) {
  std::vector<double> out(high.size());
  for (std::size_t at = 0; at < out.size(); ++at) out[at] = (high[at] - low[at]) / width;
  return out;
}

// Returns Σ over states and cells of H of the electrons through the faces next to both contacts.
std::array<double, 2> inner_currents(const BeamOperator& transport, const std::vector<double>& g) {
  const BeamGrid& grid = transport.geometry().grid;
  const std::vector<double> currents = transport.face_currents(g);
  const std::size_t faces = static_cast<std::size_t>(grid.nx) + 1;
  std::array<double, 2> sum{};
  for (std::size_t at = 0; at < currents.size(); ++at) {
    const std::size_t n = at / grid.n_h % faces;
    if (n == 1) sum[0] += kValleys * currents[at];
    if (n + 2 == faces) sum[1] += kValleys * currents[at];
  }
  return sum;
}

// Returns Σ 2ϱ of the two contact columns, nm⁻². @param sheet  one valley [n_states][nx]
std::array<double, 2> contact_electrons(const std::vector<double>& sheet, int nx) {
  std::array<double, 2> sum{};
  for (std::size_t first = 0; first < sheet.size(); first += static_cast<std::size_t>(nx)) {
    sum[0] += kValleys * sheet[first];
    sum[1] += kValleys * sheet[first + static_cast<std::size_t>(nx) - 1];
  }
  return sum;
}

std::vector<double> overlap_of(const BeamDevice& device, const Subbands& subbands) {
  const Structure& s = device.structure;
  const std::size_t levels = static_cast<std::size_t>(s.n_families()) * s.subbands;
  std::vector<double> overlap(levels * levels * s.nx);
  overlaps(device.problem, subbands.psi.data(), overlap.data());
  return overlap;
}

}  // namespace

FieldResponse::LevelTables FieldResponse::tables_of(const Subbands& subbands) const {
  LevelTables tables{
      .levels = levels_of(subbands), .overlap = overlap_of(device_, subbands), .roughness = {}};
  tables.roughness = device_.elastic.roughness(device_.problem, grid_, tables.levels, subbands.psi);
  return tables;
}

FieldResponse::LevelTables FieldResponse::tables_between(const LevelTables& low,
                                                         const LevelTables& high,
                                                         double share) const {
  const auto add = [share](const std::vector<double>& below, const std::vector<double>& above,
                           std::vector<double>* to) {
    for (std::size_t at = 0; at < to->size(); ++at)
      (*to)[at] += 0.5 * share * (above[at] - below[at]);
  };
  LevelTables out = tables_;
  add(low.levels.edge_ev, high.levels.edge_ev, &out.levels.edge_ev);
  add(low.overlap, high.overlap, &out.overlap);
  add(low.roughness, high.roughness, &out.roughness);
  return out;
}

FieldResponse::Frame::Frame(const FieldResponse& owner, const LevelTables& tables,
                            BeamGeometry cells, const std::vector<double>& g)
    : levels(tables.levels),
      geometry(std::move(cells)),
      scattering(geometry, levels, owner.device_.problem.processes, tables.overlap, owner.level_of_,
                 owner.cell_tables(tables, geometry, g)),
      transport(geometry, scattering, owner.inflow_, owner.order_) {}

// Returns f̄ of g, roughness and relaxation at given levels.
BeamCellTables FieldResponse::cell_tables(const LevelTables& at_levels, const BeamGeometry& cells,
                                          const std::vector<double>& g) const {
  BeamCellTables tables;
  tables.roughness = at_levels.roughness;
  tables.relaxation_fs = relaxation_at(at_levels.levels);
  if (!grid_.shape.fermi || device_.problem.processes.empty()) return tables;
  const std::size_t nj = static_cast<std::size_t>(grid_.n_kappa), branch = g.size() / 2;
  tables.filling.assign(branch / nj, 0.0);
  for (std::size_t cell = 0; cell < tables.filling.size(); ++cell) {
    double electrons = 0.0, states = 0.0;
    for (std::size_t at = cell * nj; at < (cell + 1) * nj; ++at) {
      electrons += cells.volume[at] * (g[at] + g[branch + at]);
      states += 2.0 * cells.volume[at];
    }
    if (states > 0.0)
      tables.filling[cell] =
          electrons / states * grid_.boltzmann(static_cast<int>(cell % grid_.n_h));
  }
  return tables;
}

// The rates by impurities are sums over angles, too slow for every direction of the potential. They
// depend on the level of their own node alone.
void FieldResponse::find_relaxation() {
  constexpr double kStep_ev = 1e-4;
  relaxation_fs_ = device_.elastic.relaxation_fs(grid_, tables_.levels);
  if (relaxation_fs_.empty()) return;
  BeamLevels low = tables_.levels, high = low;
  for (double& edge : low.edge_ev) edge -= kStep_ev;
  for (double& edge : high.edge_ev) edge += kStep_ev;
  relaxation_slope_ = difference(device_.elastic.relaxation_fs(grid_, high),
                                 device_.elastic.relaxation_fs(grid_, low), 2.0 * kStep_ev);
}

std::vector<double> FieldResponse::relaxation_at(const BeamLevels& levels) const {
  std::vector<double> rates = relaxation_fs_;
  for (std::size_t at = 0; at < rates.size(); ++at) {
    const std::size_t node = at / static_cast<std::size_t>(grid_.n_h);
    rates[at] += relaxation_slope_[at] * (levels.edge_ev[node] - tables_.levels.edge_ev[node]);
  }
  return rates;
}

FieldResponse::FieldResponse(const BeamDevice& device, const BiasPoint& bias,
                             const BeamSteadyState& state, BeamOrder order, const Device& processor)
    : device_(device),
      boundary_(potential_boundary(device.model, device.structure, bias, device.contacts.source,
                                   device.contacts.drain)),
      grid_(state.grid),
      order_(order),
      fermi_ev_{state.inflow_shift_ev[0], state.inflow_shift_ev[1] - bias.vds_v},
      inflow_(make_beam_inflow(state.grid, fermi_ev_[0], fermi_ev_[1])),
      potential_v_(state.field.potential_v),
      subbands_(solve_subbands(device.structure, potential_v_)) {
  const Structure& s = device.structure;
  for (int valley = 0; valley < s.n_valleys(); ++valley)
    for (int subband = 0; subband < s.subbands; ++subband)
      level_of_.push_back(s.family_of[static_cast<std::size_t>(valley)] * s.subbands + subband);
  tables_ = tables_of(subbands_);
  find_relaxation();
  if (device.model.neutral_inflow) {
    neutral_.emplace(device.model, s, device.contacts, bias);
    wanted_nm2_ = neutral_->wanted_nm2(grid_, tables_.levels);
  }
  solve_base(bias, state, processor);
  slopes_.emplace(base_->geometry, base_->levels);
  face_slopes_.emplace(base_->levels);
}

// Returns the means of transport by the kernels of a device, as the start of the host's solution.
std::vector<double> FieldResponse::mean_on(const Device& processor,
                                           const std::vector<double>& start) const {
  const std::unique_ptr<BeamKernels> kernels = make_beam_kernels(processor);
  kernels->load({.grid = grid_,
                 .levels = tables_.levels,
                 .processes = device_.problem.processes,
                 .overlap = tables_.overlap,
                 .level_of = level_of_,
                 .filling = {},
                 .roughness = tables_.roughness,
                 .relaxation_fs = relaxation_fs_,
                 .inflow = inflow_,
                 .order = order_});
  return kernels->solve(kTolerance, kMaxSweeps, start).mean;
}

// Solves transport at the levels of the state. With blocking Newton's iteration repeats the
// solution until the occupations are those around which it is linearised.
void FieldResponse::solve_base(const BiasPoint& bias, const BeamSteadyState& state,
                               const Device& processor) {
  constexpr int kMaxBlocking = 30;
  constexpr double kBlockingTolerance = 1e-12;
  const BeamGeometry cells = make_beam_geometry(grid_, tables_.levels);
  // The iteration begins with the mean occupations of the steady state, equal for all cells of κ.
  const auto nj = static_cast<std::size_t>(grid_.n_kappa);
  g_.resize(2 * static_cast<std::size_t>(cells.cells()));
  for (std::size_t at = 0; at < g_.size(); ++at) g_[at] = state.mean[at % (g_.size() / 2) / nj];
  std::vector<double> mean = state.mean;
  const bool blocks = grid_.shape.fermi && !device_.problem.processes.empty();
  if (processor.backend == Backend::kCuda && !blocks) mean = mean_on(processor, mean);
  for (int step = 0;; ++step) {
    base_ = std::make_unique<Frame>(*this, tables_, cells, g_);
    const BeamSolution steady = solve_beam(base_->transport, base_->scattering,
                                           {kTolerance, kMaxSweeps, BeamNorm::kElectrons}, mean);
    if (!steady.converged)
      throw NotConverged(name_of(bias) + ": small signal: transport left a residual of " +
                         shown(steady.residual) + " after " + std::to_string(steady.sweeps) +
                         " line solves");
    double change = 0.0, largest = 0.0;
    for (std::size_t cell = 0; cell < mean.size(); ++cell) {
      const double occupied = grid_.boltzmann(static_cast<int>(cell % grid_.n_h));
      change = std::max(change, occupied * std::fabs(steady.mean[cell] - mean[cell]));
      largest = std::max(largest, occupied * steady.mean[cell]);
    }
    mean = steady.mean;
    g_ = steady.g;
    if (!blocks || change <= kBlockingTolerance * largest) return;
    if (step >= kMaxBlocking)
      throw NotConverged(name_of(bias) + ": small signal: occupations still changed by " +
                         shown(change / largest) + " after " + std::to_string(kMaxBlocking) +
                         " steps of Newton's iteration");
  }
}

BeamLevels FieldResponse::levels_of(const Subbands& subbands) const {
  const Structure& s = device_.structure;
  BeamLevels levels{.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx, .edge_ev = {}};
  for (int v = 0; v < s.n_valleys(); ++v)
    for (int p = 0; p < s.subbands; ++p) {
      const auto first =
          (static_cast<std::size_t>(s.family_of[static_cast<std::size_t>(v)]) * s.subbands + p) *
          s.nx;
      for (int i = 0; i < s.nx; ++i)
        levels.edge_ev.push_back(subbands.energy_ev[first + i] +
                                 s.valleys[static_cast<std::size_t>(v)].offset_ev);
    }
  return levels;
}

std::vector<double> FieldResponse::density_of(const Subbands& subbands,
                                              const std::vector<double>& sheet) const {
  const Structure& s = device_.structure;
  std::vector<double> density(static_cast<std::size_t>(s.nx) * s.nz, 0.0);
  for (std::size_t state = 0; state < level_of_.size(); ++state)
    for (int i = 0; i < s.nx; ++i) {
      const double* psi =
          &subbands.psi[(static_cast<std::size_t>(level_of_[state]) * s.nx + i) * s.nz];
      for (int j = 0; j < s.nz; ++j)
        density[static_cast<std::size_t>(i) * s.nz + j] +=
            kValleys * sheet[state * s.nx + i] * psi[j] * psi[j];
    }
  return density;
}

FieldDerivative FieldResponse::along(const std::vector<double>& direction) const {
  const double largest = largest_magnitude(direction);
  FieldDerivative out;
  if (!(largest > 0.0)) {
    out.rate.assign(g_.size(), 0.0);
    out.storage = out.rate;
    out.poisson.assign(direction.size(), 0.0);
    return out;
  }
  const double step = kStep_v / largest;
  std::array<std::vector<double>, 2> potential{potential_v_, potential_v_};
  std::array<Subbands, 2> subbands;
  for (const int side : {0, 1}) {
    for (std::size_t at = 0; at < direction.size(); ++at)
      potential[side][at] += (side == 0 ? -step : step) * direction[at];
    subbands[side] = solve_subbands(device_.structure, potential[side]);
  }
  const LevelTables low = tables_of(subbands[0]), high = tables_of(subbands[1]);
  const LevelShift shift = face_slopes_->shift_between(low.levels, high.levels);
  std::array<std::vector<double>, 2> rate, residual;
  std::array<std::array<double, 2>, 2> current{}, excess{};
  for (const int side : {0, 1}) {
    const double sign = side == 0 ? -1.0 : 1.0, share = sign * kShareOfStep;
    const Frame frame(*this, tables_between(low, high, share), slopes_->shifted(shift, share), g_);
    rate[side] = frame.transport.rate(g_);
    current[side] = inner_currents(frame.transport, g_);
    const std::vector<double> sheet = beam_sheet_density(slopes_->shifted(shift, sign), g_);
    residual[side] = poisson_residual(device_.structure, boundary_, potential[side],
                                      density_of(subbands[side], sheet));
    if (!neutral_) continue;
    const std::array<double, 2> present = contact_electrons(beam_sheet_density(frame.geometry, g_),
                                                            grid_.nx),
                                wanted = neutral_->wanted_nm2(grid_, frame.levels);
    excess[side] = as_shifts_ev({present[0] - wanted[0], present[1] - wanted[1]});
  }
  const double width = 2.0 * step * kShareOfStep;
  out.rate = difference(rate[1], rate[0], width);
  out.poisson = difference(residual[1], residual[0], 2.0 * step);
  for (const int n : {0, 1}) {
    out.current[n] = (current[1][n] - current[0][n]) / width;
    out.excess_ev[n] = (excess[1][n] - excess[0][n]) / width;
  }
  out.storage = slopes_->storage(shift, g_);
  for (double& value : out.storage) value /= step;
  return out;
}

std::vector<double> FieldResponse::poisson_of(const std::vector<double>& g) const {
  const Structure& s = device_.structure;
  std::vector<double> out = density_of(subbands_, beam_sheet_density(base_->geometry, g));
  for (std::size_t at = 0; at < out.size(); ++at) {
    const double width = s.column_width_nm(static_cast<int>(at) / s.nz);
    out[at] *= boundary_.fixed[at] != 0 ? 0.0 : kChargeOverEpsilon0_v_nm * width * s.dz_nm;
  }
  return out;
}

std::array<double, 2> FieldResponse::current_of(const std::vector<double>& g) const {
  return inner_currents(base_->transport, g);
}

std::array<double, 2> FieldResponse::as_shifts_ev(
    const std::array<double, 2>& electrons_nm2) const {
  const double kt = grid_.shape.kt_ev;
  return {kt * electrons_nm2[0] / wanted_nm2_[0], kt * electrons_nm2[1] / wanted_nm2_[1]};
}

std::array<double, 2> FieldResponse::excess_of(const std::vector<double>& g) const {
  if (!neutral_) return {};
  return as_shifts_ev(contact_electrons(beam_sheet_density(base_->geometry, g), grid_.nx));
}

// Returns 1 − f of the inflow for Fermi statistics, and 1 for Maxwell's: kT ∂ln f/∂E_F.
double FieldResponse::empty_share(std::size_t k, bool source) const {
  if (!grid_.shape.fermi) return 1.0;
  const int cell = static_cast<int>(k);
  return 1.0 - (source ? inflow_.source[k] : inflow_.drain[k]) * grid_.boltzmann(cell);
}

std::vector<double> FieldResponse::inflow_drive(bool source) const {
  const BeamGeometry& base = base_->geometry;
  std::vector<double> out(g_.size(), 0.0);
  const int nx = grid_.nx;
  for (int state = 0; state < base.n_states; ++state) {
    const double scale = base.speed_factor[static_cast<std::size_t>(state)] / grid_.dx_nm;
    for (std::int64_t line = 0; line < base.lines(); ++line) {
      const auto k = static_cast<std::size_t>(line / grid_.n_kappa);
      const double entering =
          (source ? inflow_.source[k] : inflow_.drain[k]) * empty_share(k, source);
      const auto at = static_cast<std::size_t>(base.node(state, source ? 0 : nx - 1) + line),
                 face = static_cast<std::size_t>(base.face(state, source ? 0 : nx) + line);
      out[(source ? 0 : g_.size() / 2) + at] =
          -scale * base.area[face] * entering / grid_.shape.kt_ev;
    }
  }
  return out;
}

double FieldResponse::excess_drive(bool source) const {
  if (!neutral_) return 0.0;
  constexpr double kShift_ev = 1e-4;
  const std::size_t side = source ? 0 : 1;
  std::array<double, 2> up{}, down{};
  up[side] = kShift_ev;
  down[side] = -kShift_ev;
  const double slope = (neutral_->wanted_nm2(grid_, base_->levels, up)[side] -
                        neutral_->wanted_nm2(grid_, base_->levels, down)[side]) /
                       (2.0 * kShift_ev);
  return grid_.shape.kt_ev * slope / wanted_nm2_[side];
}

FieldResponse::WantedElectrons FieldResponse::wanted_electrons(bool source, int nodes) const {
  constexpr double kStep_ev = kStep_v * kShareOfStep;
  const std::size_t side = source ? 0 : 1;
  WantedElectrons wanted{wanted_nm2_[side], std::vector<double>(level_of_.size() * nodes, 0.0)};
  if (!neutral_) return wanted;
#pragma omp parallel for schedule(dynamic)
  for (int number = 0; number < static_cast<int>(wanted.slope.size()); ++number) {
    const int state = number / nodes, inward = number % nodes;
    const auto at =
        static_cast<std::size_t>(state * grid_.nx + (source ? inward : grid_.nx - 1 - inward));
    BeamLevels low = base_->levels, high = low;
    low.edge_ev[at] -= kStep_ev;
    high.edge_ev[at] += kStep_ev;
    wanted.slope[static_cast<std::size_t>(number)] =
        (neutral_->wanted_nm2(grid_, high)[side] - neutral_->wanted_nm2(grid_, low)[side]) /
        (2.0 * kStep_ev);
  }
  return wanted;
}

}  // namespace quasi::mosfet
