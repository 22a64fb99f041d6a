#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/backend/ranks/parallel_failure.hpp"
#include "workers/mosfet/input/table_reader.hpp"
#include "workers/mosfet/kernels/electrostatics/largest_magnitude.hpp"
#include "workers/mosfet/kernels/electrostatics/level_response.hpp"
#include "workers/mosfet/physics/statistics.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kLargestStep_v = 0.2;
constexpr int kMaxIterations = 60;

double top_gate_v(const DeviceModel& model, const BiasPoint& bias) {
  return bias.vgs_v - (model.gate.workfunction_top_ev - model.material.affinity_ev);
}
double bottom_gate_v(const DeviceModel& model, const BiasPoint& bias) {
  return bias.vgs_v + model.gate.bottom_offset_v -
         (model.gate.workfunction_bottom_ev - model.material.affinity_ev);
}

// Fills the response of one column from its transported levels. Levels that are too close for that
// take all states of the column.
void respond(const Structure& s, const Equilibrium& state, int i, const double* sheet,
             const double* slope, double* response) {
  const int n = s.interior(), nf = s.n_families();
  const double* potential_v = &state.potential_v[static_cast<std::size_t>(i) * s.nz];
  ColumnLevels levels{.energies = std::vector<std::vector<double>>(nf),
                      .psi = std::vector<std::vector<const double*>>(nf)};
  for (int f = 0; f < nf; ++f)
    for (int p = 0; p < s.subbands; ++p) {
      const std::size_t at = (static_cast<std::size_t>(f) * s.subbands + p) * s.nx + i;
      levels.energies[f].push_back(state.subbands.energy_ev[at]);
      levels.psi[f].push_back(&state.subbands.psi[at * s.nz + 1]);
    }
  if (level_response(s, potential_v, levels, sheet, slope, response)) return;
  std::vector<double> energy(static_cast<std::size_t>(nf) * n), vectors(energy.size() * n);
  ColumnStates states{std::vector<const double*>(nf), std::vector<const double*>(nf)};
  for (int f = 0; f < nf; ++f) {
    double* energies = &energy[static_cast<std::size_t>(f) * n];
    double* waves = &vectors[static_cast<std::size_t>(f) * n * n];
    all_states(s, f, potential_v, energies, waves);
    states.energies[f] = energies;
    states.vectors[f] = waves;
  }
  column_response(s, states, sheet, slope, false, response);
}

// Solves for levels and ψ of `state` at its V. `warm` starts from the levels in `state`.
void find_levels(const Structure& s, bool warm, Equilibrium* state) {
  const auto levels = static_cast<std::size_t>(s.n_families()) * s.subbands * s.nx;
  state->subbands.energy_ev.resize(levels, 0.0);
  state->subbands.psi.resize(levels * s.nz, 0.0);
  if (!solve_levels(s, state->potential_v, warm, &state->subbands.energy_ev, &state->subbands.psi))
    throw NotConverged("a subband level failed its certificate by Sturm counts");
}

// Fills ϱ and N of `state` from its levels, and the response of each column unless `responses` is
// null.
void find_densities(const Structure& s, const SheetModel& sheet_at, Equilibrium* state,
                    std::vector<double>* responses) {
  const int n = s.interior(), nv = s.n_valleys(), np = s.subbands;
  state->sheet_nm2.assign(static_cast<std::size_t>(nv) * np * s.nx, 0.0);
  state->density_nm3.assign(static_cast<std::size_t>(s.nx) * s.nz, 0.0);
  if (responses != nullptr) responses->resize(static_cast<std::size_t>(s.nx) * s.nz * s.nz);
  ParallelFailure failure;
#pragma omp parallel
  {
    std::vector<double> sheet(static_cast<std::size_t>(nv) * np), slope(sheet.size());
#pragma omp for schedule(static)
    for (int i = 0; i < s.nx; ++i)
      failure.guard([&] {
        double* density = &state->density_nm3[static_cast<std::size_t>(i) * s.nz];
        for (int v = 0; v < nv; ++v)
          for (int p = 0; p < np; ++p) {
            const std::size_t at = (static_cast<std::size_t>(s.family_of[v]) * np + p) * s.nx + i;
            const SheetDensity rho = sheet_at(v, p, i, state->subbands.energy_ev[at]);
            sheet[static_cast<std::size_t>(v) * np + p] = rho.density_nm2;
            slope[static_cast<std::size_t>(v) * np + p] = rho.slope_nm2_ev;
            state->sheet_nm2[(static_cast<std::size_t>(v) * np + p) * s.nx + i] = rho.density_nm2;
            const double* psi = &state->subbands.psi[at * s.nz + 1];
            for (int k = 0; k < n; ++k) density[k + 1] += 2.0 * rho.density_nm2 * psi[k] * psi[k];
          }
        if (responses != nullptr)
          respond(s, *state, i, sheet.data(), slope.data(),
                  &(*responses)[static_cast<std::size_t>(i) * s.nz * s.nz]);
      });
  }
  failure.rethrow();
}

// Fills levels, ψ, ϱ and N of `state` at its V.
void evaluate(const Structure& s, const SheetModel& sheet_at, bool warm, Equilibrium* state) {
  find_levels(s, warm, state);
  find_densities(s, sheet_at, state, nullptr);
}

// Subtracts a step from V, and shifts the levels as perturbation theory of first order does, for
// the warm start of the next solution.
void take_step(const Structure& s, const std::vector<double>& step_v, double factor,
               Equilibrium* state) {
  for (std::size_t k = 0; k < step_v.size(); ++k) state->potential_v[k] -= factor * step_v[k];
  Subbands& levels = state->subbands;
  for (std::size_t at = 0; at < levels.energy_ev.size(); ++at) {
    const double *psi = &levels.psi[at * s.nz], *step = &step_v[at % s.nx * s.nz];
    for (int k = 0; k < s.nz; ++k)
      levels.energy_ev[at] += factor * s.dz_nm * psi[k] * psi[k] * step[k];
  }
}

std::string history(const std::vector<double>& steps) {
  std::string text;
  const std::size_t from = steps.size() > 8 ? steps.size() - 8 : 0;
  for (std::size_t k = from; k < steps.size(); ++k)
    text += (text.empty() ? "" : ", ") + shown(steps[k]);
  return text;
}

// A kept matrix serves while steps are small and each is below this share of the last one.
constexpr double kLargestKeptStep_v = 0.02, kLeastFall = 0.25;

// Solves for the step of V from a residual with the kept matrix, if that is good enough. @return
// false if the matrix must be renewed
bool kept_step(double last_v, KeptMatrix* kept, std::vector<double>* step, double* largest) {
  if (!kept->matrix) return false;
  kept->matrix->solve(step->data());
  *largest = largest_magnitude(*step);
  if (!(*largest <= kLargestKeptStep_v && *largest <= kLeastFall * last_v)) return false;
  if (std::isfinite(last_v)) kept->fall = *largest / last_v;
  return true;
}

void newton(const Structure& s, const PotentialBoundary& boundary, const SheetModel& sheet_at,
            const FieldTask& task, Equilibrium* state) {
  std::vector<double> responses;
  KeptMatrix own, &kept = task.kept != nullptr ? *task.kept : own;
  bool warm = !task.subbands.energy_ev.empty(), known = warm && task.knows_levels;
  if (warm) state->subbands = task.subbands;
  double last = INFINITY;
  for (int iteration = 0;; ++iteration) {
    bool renews = task.kept == nullptr || !kept.matrix;
    if (!known) find_levels(s, warm, state);
    warm = true;
    known = false;
    find_densities(s, sheet_at, state, renews ? &responses : nullptr);
    const std::vector<double> residual =
        poisson_residual(s, boundary, state->potential_v, state->density_nm3);
    std::vector<double> step = residual;
    double largest = INFINITY;
    if (!renews && !kept_step(last, &kept, &step, &largest)) {
      renews = true;
      find_densities(s, sheet_at, state, &responses);
      step = residual;
    }
    if (renews) {
      kept.matrix.emplace(s, boundary, responses);
      kept.matrix->factorise();
      kept.fall = kLeastFall;
      kept.matrix->solve(step.data());
      largest = largest_magnitude(step);
    }
    if (!std::isfinite(largest))
      throw NotConverged(task.what +
                         ": Newton's iteration became infinite or undefined; |δV| in V: " +
                         history(state->newton_v));
    state->newton_v.push_back(largest);
    if (iteration >= kMaxIterations)
      throw NotConverged(task.what + ": the potential did not converge in " +
                         std::to_string(kMaxIterations) +
                         " Newton steps; last |δV| in V: " + history(state->newton_v));
    const double factor = largest > kLargestStep_v ? kLargestStep_v / largest : 1.0;
    take_step(s, step, factor, state);
    // A renewed matrix leaves an error of the square of the step, a kept one its usual share.
    if (renews ? largest <= task.tolerance_v : kept.fall * largest <= task.kept_error_v()) break;
    last = largest;
  }
  if (task.completes) evaluate(s, sheet_at, true, state);
}

// Returns the densities of the deck's statistics at a quasi-Fermi level E_F(x) [nx].
SheetModel statistics_at(const DeviceModel& model, const Structure& s,
                         std::vector<double> fermi_ev) {
  return [&model, &s, fermi_ev = std::move(fermi_ev)](int v, int, int i, double level_ev) {
    const ValleyPair& valley = s.valleys[static_cast<std::size_t>(v)];
    return sheet_density(model, valley,
                         fermi_ev[static_cast<std::size_t>(i)] - level_ev - valley.offset_ev);
  };
}

}  // namespace

void complete_field(const Structure& s, const SheetModel& sheet, Equilibrium* state) {
  evaluate(s, sheet, true, state);
}

double FieldTask::kept_error_v() const {
  constexpr double kCurvature_v = 0.025;  // kT/q, over which densities change by their own size
  return tolerance_v * tolerance_v / kCurvature_v;
}

Equilibrium solve_field(const Structure& s, const PotentialBoundary& boundary,
                        const SheetModel& sheet, const FieldTask& task) {
  Equilibrium state;
  state.potential_v = task.potential_v;
  for (std::size_t k = 0; k < boundary.fixed.size(); ++k)
    if (boundary.fixed[k]) state.potential_v[k] = boundary.value_v[k];
  newton(s, boundary, sheet, task, &state);
  return state;
}

SheetDensity sheet_density(const DeviceModel& model, const ValleyPair& valley, double gap_ev) {
  const KaneBand band{valley.mx_m0, valley.my_m0, model.material.alpha_per_ev};
  return model.statistics == StatisticsKind::kFermi ? sheet_fermi(band, model.kt_ev(), gap_ev)
                                                    : sheet_maxwell(band, model.kt_ev(), gap_ev);
}

double Equilibrium::sheet_total_nm2(const Structure& s, int i) const {
  double total = 0.0;
  for (int k = 0; k < s.n_valleys() * s.subbands; ++k)
    total += 2.0 * sheet_nm2[static_cast<std::size_t>(k) * s.nx + i];
  return total;
}

Structure column_structure(const Structure& device, int i) {
  Structure column = device;
  column.nx = 1;
  column.x_nm = {device.x_nm[i]};
  column.doping_nm3.assign(
      device.doping_nm3.begin() + static_cast<std::ptrdiff_t>(i) * device.nz,
      device.doping_nm3.begin() + static_cast<std::ptrdiff_t>(i + 1) * device.nz);
  column.gate_first = 1;
  column.gate_last = 0;
  return column;
}

Equilibrium solve_contact(const DeviceModel& model, const Structure& device, int i) {
  const Structure column = column_structure(device, i);
  PotentialBoundary free_ends{std::vector<char>(column.nz, 0), std::vector<double>(column.nz, 0.0)};
  // The start is the ladder of levels in a flat potential, shifted until it holds the doping.
  Equilibrium state;
  state.potential_v.assign(column.nz, 0.0);
  double donors_nm2 = 0.0;
  for (const double n : column.doping_nm3) donors_nm2 += n * column.dz_nm;
  double low = -3.0, high = 3.0;
  while (high - low > 1e-3) {
    const double fermi = 0.5 * (low + high);
    evaluate(column, statistics_at(model, column, {fermi}), false, &state);
    (state.sheet_total_nm2(column, 0) > donors_nm2 ? high : low) = fermi;
  }
  state.potential_v.assign(column.nz, 0.5 * (low + high));
  newton(column, free_ends, statistics_at(model, column, {0.0}), {.what = "contact column"},
         &state);
  return state;
}

Equilibrium solve_gated_column(const DeviceModel& model, const Structure& column,
                               const BiasPoint& bias) {
  const auto count = static_cast<std::size_t>(column.nz);
  PotentialBoundary gates{std::vector<char>(count, 0), std::vector<double>(count, 0.0)};
  gates.fixed.front() = gates.fixed.back() = 1;
  gates.value_v.front() = top_gate_v(model, bias);
  gates.value_v.back() = bottom_gate_v(model, bias);
  Equilibrium state;
  // An inverted film screens its gates. From V = 0 the electrons enter gradually; from V_gate there
  // would be far too many.
  state.potential_v.assign(count,
                           std::min(0.0, 0.5 * (gates.value_v.front() + gates.value_v.back())));
  state.potential_v.front() = gates.value_v.front();
  state.potential_v.back() = gates.value_v.back();
  newton(column, gates, statistics_at(model, column, {0.0}),
         {.what = "gated column at V_GS = " + shown(bias.vgs_v) + " V"}, &state);
  return state;
}

PotentialBoundary potential_boundary(const DeviceModel& model, const Structure& s,
                                     const BiasPoint& bias, const Equilibrium& source,
                                     const Equilibrium& drain) {
  const auto count = static_cast<std::size_t>(s.nx) * s.nz;
  PotentialBoundary boundary{std::vector<char>(count, 0), std::vector<double>(count, 0.0)};
  const auto fix = [&](int i, int j, double value) {
    boundary.fixed[static_cast<std::size_t>(i) * s.nz + j] = 1;
    boundary.value_v[static_cast<std::size_t>(i) * s.nz + j] = value;
  };
  for (int i = s.gate_first; i <= s.gate_last; ++i) {
    fix(i, 0, top_gate_v(model, bias));
    fix(i, s.nz - 1, bottom_gate_v(model, bias));
  }
  if (model.contact == ContactKind::kColumn)
    for (int j = 0; j < s.nz; ++j) {
      fix(0, j, source.potential_v[j]);
      fix(s.nx - 1, j, drain.potential_v[j] + bias.vds_v);
    }
  return boundary;
}

std::vector<double> quasi_fermi_ev(const DeviceModel& model, const Structure& s, double vds_v) {
  std::vector<double> level(static_cast<std::size_t>(s.nx));
  for (int i = 0; i < s.nx; ++i) {
    const double share =
        std::clamp((s.x_nm[i] - model.geometry.source_nm) / model.geometry.channel_nm, 0.0, 1.0);
    level[i] = -vds_v * share;
  }
  return level;
}

Equilibrium solve_quasi_equilibrium(const DeviceModel& model, const Structure& s,
                                    const BiasPoint& bias, const Equilibrium& source,
                                    const Equilibrium& drain, const QuasiEquilibriumStart& start) {
  const PotentialBoundary boundary = potential_boundary(model, s, bias, source, drain);
  FieldTask task{.potential_v = start.potential_v,
                 .what = "equilibrium at V_GS = " + shown(bias.vgs_v) +
                         " V, V_DS = " + shown(bias.vds_v) + " V",
                 .tolerance_v = start.tolerance_v,
                 .kept = start.kept};
  if (task.potential_v.empty()) {
    task.potential_v.resize(boundary.fixed.size());
    for (int i = 0; i < s.nx; ++i)
      for (int j = 0; j < s.nz; ++j)
        task.potential_v[static_cast<std::size_t>(i) * s.nz + j] =
            source.potential_v[j] - start.fermi_ev[i];
  }
  return solve_field(s, boundary, statistics_at(model, s, start.fermi_ev), task);
}

Equilibrium solve_equilibrium(const DeviceModel& model, const Structure& s, const BiasPoint& bias,
                              const Equilibrium& source, const Equilibrium& drain,
                              const std::vector<double>& start_v) {
  return solve_quasi_equilibrium(
      model, s, bias, source, drain,
      {.fermi_ev = quasi_fermi_ev(model, s, bias.vds_v), .potential_v = start_v});
}

}  // namespace quasi::mosfet
