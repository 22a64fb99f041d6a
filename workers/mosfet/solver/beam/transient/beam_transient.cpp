#include "workers/mosfet/solver/beam/transient/beam_transient.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/march/beam_march.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/solver/beam/neutral_contacts.hpp"
#include "workers/mosfet/solver/sweep/point_limits.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"

namespace quasi::mosfet {
namespace {

// Levels move by at most this share of ΔH in one sweep, so that no cell gives more than it holds.
constexpr double kLargestMove = 0.5;
// The shift of E_F of a neutral inflow relaxes with this time, which is a few transits of the
// contact column.
constexpr double kNeutral_fs = 5.0;
// The field may have an error of kShareOfTolerance times run.tol_v. Newton's method converges
// quadratically: after a last step δV the error is about δV²/kCurvature_v.
constexpr double kShareOfTolerance = 1e-2, kCurvature_v = 0.025;

double lowest_of(const BeamLevels& levels) {
  return *std::min_element(levels.edge_ev.begin(), levels.edge_ev.end());
}

}  // namespace

BeamGrid make_transient_grid(const BeamDevice& device, const std::vector<BiasPoint>& biases) {
  const Structure& s = device.structure;
  const bool fermi = device.model.statistics == StatisticsKind::kFermi;
  BeamGrid grid;
  double h_max_ev = 0.0;
  for (std::size_t at = 0; at < biases.size(); ++at) {
    constexpr double kTolerance_v = 1e-4;
    const Equilibrium field = solve_quasi_equilibrium(
        device.model, s, biases[at], device.contacts.source, device.contacts.drain,
        {.fermi_ev = quasi_fermi_ev(device.model, s, biases[at].vds_v),
         .potential_v = {},
         .tolerance_v = kTolerance_v});
    BeamLevels levels{.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx, .edge_ev = {}};
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p)
        for (int i = 0; i < s.nx; ++i) levels.edge_ev.push_back(field.energy(s, v, p, i));
    const BeamGrid own = make_beam_grid(device.mesh, levels, s.dx_nm, device.problem.alpha_per_ev,
                                        {.kt_ev = device.problem.kt_ev, .fermi = fermi});
    const double own_max_ev = own.h_low_ev(own.n_h);
    if (at == 0) {
      grid = own;
      h_max_ev = own_max_ev;
      continue;
    }
    const double below = (grid.h_min_ev - own.h_min_ev) / grid.dh_ev;
    const int cells_below = std::max(0, static_cast<int>(std::ceil(below - 1e-6)));
    const double above = (own_max_ev - h_max_ev) / grid.dh_ev;
    const int cells_above = std::max(0, static_cast<int>(std::ceil(above - 1e-6)));
    grid.h_min_ev -= cells_below * grid.dh_ev;
    grid.n_h += cells_below + cells_above;
    h_max_ev = grid.h_low_ev(grid.n_h);
  }
  grid.dkappa = std::sqrt(beam_gamma(h_max_ev - grid.h_min_ev, grid.alpha_per_ev)) / grid.n_kappa;
  return grid;
}

BeamTransient::BeamTransient(const BeamDevice& device, BiasAt bias_at,
                             const BeamTransientSettings& settings, const BeamGrid& grid)
    : device_(device),
      bias_at_(std::move(bias_at)),
      settings_(settings),
      grid_(grid),
      table_(grid) {
  const Structure& s = device.structure;
  for (int valley = 0; valley < s.n_valleys(); ++valley)
    for (int subband = 0; subband < s.subbands; ++subband)
      level_of_.push_back(s.family_of[static_cast<std::size_t>(valley)] * s.subbands + subband);
}

void BeamTransient::start(BeamKernels& kernels, Progress& progress) {
  const BiasPoint bias = bias_at_(0.0);
  BeamDevice device = device_;
  device.grid = &grid_;
  BeamSteadyState steady;
  try {
    steady = solve_beam_point(device, bias, kernels, progress);
  } catch (const NotConverged&) {
    if (bias.vds_v == 0.0) throw;
    steady = solve_through_lower_bias(device, bias, kernels, progress);
  }
  g_ = kernels.distribution();
  potential_v_ = steady.passed_on.potential_v;
  subbands_ = solve_subbands(device_.structure, potential_v_, steady.field.subbands);
  shifts_ev_ = steady.inflow_shift_ev;
  placed_ = place(levels_of(subbands_));
  const std::vector<double> sheet = beam_sheet_density(placed_.geometry, g_);
  sheet_nm2_ = {sheet, sheet, sheet};
  sheet_fs_ = {0.0, -settings_.step_fs, -2.0 * settings_.step_fs};
  time_fs_ = last_dt_fs_ = along_x_fs_ = 0.0;
  steps_ = 0;
  begin_batch();
}

PointState BeamTransient::state() const {
  return {.pdf = g_,
          .potential_v = potential_v_,
          .energy_ev = subbands_.energy_ev,
          .psi = subbands_.psi,
          .trend_v = sheet_nm2_[1],
          .curvature_v = sheet_nm2_[2],
          .lead_ev = {shifts_ev_[0], shifts_ev_[1], sheet_fs_[1], sheet_fs_[2], along_x_fs_},
          .current_integral = std::vector<double>(static_cast<std::size_t>(grid_.nx) + 1, 0.0),
          .last_dt_fs = last_dt_fs_,
          .time_fs = time_fs_,
          .step = steps_};
}

void BeamTransient::restore(const PointState& state) {
  g_ = state.pdf;
  potential_v_ = state.potential_v;
  subbands_ = {state.energy_ev, state.psi};
  shifts_ev_ = {state.lead_ev.at(0), state.lead_ev.at(1)};
  sheet_fs_ = {state.time_fs, state.lead_ev.at(2), state.lead_ev.at(3)};
  along_x_fs_ = state.lead_ev.at(4);
  placed_ = place(levels_of(subbands_));
  sheet_nm2_ = {beam_sheet_density(placed_.geometry, g_), state.trend_v, state.curvature_v};
  last_dt_fs_ = state.last_dt_fs;
  time_fs_ = state.time_fs;
  steps_ = state.step;
  begin_batch();
}

void BeamTransient::begin_batch() {
  kept_ = {};
  kept_now_ = {};
}

double BeamTransient::step_until(double stop_fs) const {
  // The largest stable step along x is that of the last field. The margin allows for its change to
  // the next field.
  constexpr double kMargin = 0.97;
  double longest_fs = settings_.step_fs;
  if (const double part_fs = kMargin * along_x_fs_; part_fs > 0.0)
    longest_fs = part_fs * std::max(1.0, std::floor(settings_.step_fs / part_fs));
  const double left_fs = stop_fs - time_fs_;
  return left_fs / std::max(1.0, std::ceil(left_fs / longest_fs - 1e-9));
}

BeamTransientStep BeamTransient::step(double dt_fs) {
  const double middle_fs = time_fs_ + 0.5 * dt_fs;
  const Equilibrium field = solve_for(sheet_at(middle_fs), middle_fs, &kept_);
  move_to(levels_of(field.subbands));
  potential_v_ = field.potential_v;
  subbands_ = field.subbands;
  const BeamProblem p = problem_at(middle_fs);
  const BeamScattering scattering(placed_.geometry, p.levels, p.processes, p.overlap, p.level_of,
                                  {p.filling, p.roughness, p.relaxation_fs});
  const BeamOperator problem(placed_.geometry, scattering, p.inflow, p.order);
  along_x_fs_ = settings_.cfl * problem.largest_step_fs();
  const int parts = static_cast<int>(std::ceil(dt_fs / along_x_fs_));
  const BeamMarched marched = march_beam(problem, scattering, dt_fs / parts, parts, &g_);
  time_fs_ += dt_fs;
  last_dt_fs_ = dt_fs;
  ++steps_;
  sheet_nm2_ = {beam_sheet_density(placed_.geometry, g_), std::move(sheet_nm2_[0]),
                std::move(sheet_nm2_[1])};
  sheet_fs_ = {time_fs_, sheet_fs_[0], sheet_fs_[1]};
  follow_neutrality(dt_fs);
  BeamTransientStep out{.record = {.time_fs = time_fs_, .dt_fs = dt_fs}, .least = marched.least};
  out.passed = sum_beam_fluxes(grid_, marched.passed, {}).current;
  const std::size_t nx = out.passed.size() - 1;
  out.record.current_source = out.passed.front() / dt_fs;
  out.record.current_mid = out.passed[nx / 2] / dt_fs;
  out.record.current_drain = out.passed.back() / dt_fs;
  for (const double sheet : sheet_nm2_[0]) out.record.charge_nm += 2.0 * sheet * grid_.dx_nm;
  out.record.chord_iterations = static_cast<int>(field.newton_v.size());
  out.record.residual = field.newton_v.back();
  return out;
}

Equilibrium BeamTransient::field_now() { return solve_for(sheet_nm2_[0], time_fs_, &kept_now_); }

BeamSteadyState BeamTransient::present() {
  BeamSteadyState out;
  out.field = field_now();
  move_to(levels_of(out.field.subbands));
  potential_v_ = out.field.potential_v;
  subbands_ = out.field.subbands;
  const BeamProblem p = problem_at(time_fs_);
  const BeamScattering scattering(placed_.geometry, p.levels, p.processes, p.overlap, p.level_of,
                                  {p.filling, p.roughness, p.relaxation_fs});
  const BeamOperator problem(placed_.geometry, scattering, p.inflow, p.order);
  out.grid = grid_;
  out.mean = scattering.mean(g_);
  out.fluxes = beam_fluxes(placed_.geometry, scattering, problem, g_);
  out.inflow_shift_ev = shifts_ev_;
  if (device_.model.neutral_inflow)
    out.inflow_scale =
        NeutralContacts(device_.model, device_.structure, device_.contacts, bias_at_(time_fs_))
            .inflow_scales(p.levels, shifts_ev_);
  return out;
}

BeamLevels BeamTransient::levels_of(const Subbands& subbands) const {
  const Structure& s = device_.structure;
  BeamLevels levels{.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx, .edge_ev = {}};
  for (std::size_t state = 0; state < level_of_.size(); ++state)
    for (int i = 0; i < s.nx; ++i)
      levels.edge_ev.push_back(
          subbands.energy_ev[static_cast<std::size_t>(level_of_[state]) * s.nx + i] +
          s.valleys[state / s.subbands].offset_ev);
  return levels;
}

PlacedLevels BeamTransient::place(BeamLevels levels) const {
  PlacedLevels placed{.levels = std::move(levels), .geometry = {}, .edges = {}};
  placed.geometry = make_beam_geometry(grid_, placed.levels, table_, &placed.edges);
  return placed;
}

Equilibrium BeamTransient::solve_for(const std::vector<double>& sheet_nm2, double time_fs,
                                     KeptMatrix* kept) {
  const Structure& s = device_.structure;
  const BiasPoint bias = bias_at_(time_fs);
  const PotentialBoundary boundary =
      potential_boundary(device_.model, s, bias, device_.contacts.source, device_.contacts.drain);
  const SheetModel sheet = [&](int v, int p, int i, double) {
    const std::size_t at = (static_cast<std::size_t>(v) * s.subbands + p) * s.nx + i;
    return SheetDensity{sheet_nm2[at], 0.0};
  };
  return solve_field(
      s, boundary, sheet,
      {.potential_v = potential_v_,
       .subbands = subbands_,
       .what = "field at " + name_of(bias) + ", t = " + shown(time_fs) + " fs",
       .tolerance_v = std::sqrt(kShareOfTolerance * device_.tolerance_v * kCurvature_v),
       .kept = kept});
}

void BeamTransient::move_to(const BeamLevels& levels) {
  if (lowest_of(levels) < grid_.h_low_ev(1))
    throw NotConverged(name_of(bias_at_(time_fs_)) + ": the lowest level fell to " +
                       brief(lowest_of(levels)) + " eV at t = " + shown(time_fs_) +
                       " fs, below the cells of H; lower run.cfl, or use run.scheme = \"weno\"");
  double largest_ev = 0.0;
  for (std::size_t at = 0; at < levels.edge_ev.size(); ++at)
    largest_ev = std::max(largest_ev, std::fabs(levels.edge_ev[at] - placed_.levels.edge_ev[at]));
  const int parts =
      std::max(1, static_cast<int>(std::ceil(largest_ev / (kLargestMove * grid_.dh_ev))));
  const BeamLevels from = placed_.levels;
  for (int part = 1; part <= parts; ++part) {
    BeamLevels between = levels;
    const double share = static_cast<double>(part) / parts;
    for (std::size_t at = 0; at < levels.edge_ev.size() && part < parts; ++at)
      between.edge_ev[at] = from.edge_ev[at] + share * (levels.edge_ev[at] - from.edge_ev[at]);
    PlacedLevels next = place(std::move(between));
    sweep_levels(placed_, next, &g_);
    placed_ = std::move(next);
  }
}

// Returns the sheet densities ϱ at a time after the last step. They follow the parabola in time
// through the densities at the last three ends of steps.
std::vector<double> BeamTransient::sheet_at(double time_fs) const {
  std::array<double, 3> weight{1.0, 1.0, 1.0};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      if (a != b) weight[a] *= (time_fs - sheet_fs_[b]) / (sheet_fs_[a] - sheet_fs_[b]);
  std::vector<double> sheet(sheet_nm2_[0].size());
  for (std::size_t at = 0; at < sheet.size(); ++at) {
    for (int a = 0; a < 3; ++a) sheet[at] += weight[a] * sheet_nm2_[a][at];
    // A parabola through a steep rise may fall below zero.
    sheet[at] = std::max(sheet[at], 0.0);
  }
  return sheet;
}

BeamProblem BeamTransient::problem_at(double time_fs) const {
  const Structure& s = device_.structure;
  const std::size_t pairs =
      static_cast<std::size_t>(s.n_families() * s.subbands) * s.n_families() * s.subbands;
  BeamProblem problem{
      .grid = grid_,
      .levels = placed_.levels,
      .processes = device_.problem.processes,
      .overlap = std::vector<double>(pairs * s.nx),
      .level_of = level_of_,
      .inflow = make_beam_inflow(grid_, shifts_ev_[0], shifts_ev_[1] - bias_at_(time_fs).vds_v)};
  overlaps(device_.problem, subbands_.psi.data(), problem.overlap.data());
  problem.roughness =
      device_.elastic.roughness(device_.problem, grid_, placed_.levels, subbands_.psi);
  problem.relaxation_fs = device_.elastic.relaxation_fs(grid_, placed_.levels);
  if (!grid_.shape.fermi || problem.processes.empty()) return problem;
  // The factors 1 − f of scattering are linearised around the present occupations.
  const BeamScattering present(placed_.geometry, placed_.levels, {}, problem.overlap, level_of_);
  problem.filling = present.mean(g_);
  for (std::size_t cell = 0; cell < problem.filling.size(); ++cell)
    problem.filling[cell] *= grid_.boltzmann(static_cast<int>(cell % grid_.n_h));
  return problem;
}

void BeamTransient::follow_neutrality(double dt_fs) {
  if (!device_.model.neutral_inflow) return;
  const BiasPoint bias = bias_at_(time_fs_);
  const NeutralContacts neutral(device_.model, device_.structure, device_.contacts, bias);
  const std::array<double, 2> changes = neutral.changes_ev(grid_, placed_.levels, sheet_nm2_[0]);
  for (const int side : {0, 1})
    shifts_ev_[side] += std::min(1.0, dt_fs / kNeutral_fs) * changes[side];
  check_inflow_scale(bias, neutral.inflow_scales(placed_.levels, shifts_ev_),
                     " at t = " + shown(time_fs_) + " fs");
}

}  // namespace quasi::mosfet
