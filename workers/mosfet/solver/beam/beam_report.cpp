#include <algorithm>

#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"

namespace quasi::mosfet {
namespace {

/// One e/fs·eV/nm is this number of W/m.
constexpr double kPowerUnit_w_m = kCurrentUnit_a_m;

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

void add_numbers(const BeamDevice& device, const BeamSteadyState& state, PointResult* point) {
  auto& n = point->numbers;
  const std::vector<double>& current = state.fluxes.current;
  const auto [low, high] = std::minmax_element(current.begin(), current.end());
  n["current_a_per_m"] = n["current_mean_a_per_m"] = current[current.size() / 2] * kCurrentUnit_a_m;
  n["current_source_a_per_m"] = current.front() * kCurrentUnit_a_m;
  n["current_drain_a_per_m"] = current.back() * kCurrentUnit_a_m;
  n["current_spread_a_per_m"] = (*high - *low) * kCurrentUnit_a_m;
  n["current_drift_a_per_m"] = 0.0;
  n["time_fs"] = 0.0;
  n["steps"] = state.outer;
  n["line_solves"] = state.sweeps;
  n["last_step_v"] = state.last_step_v;
  const double ballistic = ballistic_current(device.model, device.problem,
                                             state.field.subbands.energy_ev, point->bias.vds_v) *
                           kCurrentUnit_a_m;
  n["ballistic_a_per_m"] = ballistic;
  n["ballistic_ratio"] = ballistic_ratio(n["current_a_per_m"], ballistic);
  n["gate_charge_per_nm"] = terminal_charge(device.problem, state.field.potential_v).gate;
  n["energy_defect_w_per_m"] = state.fluxes.energy_defect * kPowerUnit_w_m;
}

PointResult report(const Deck& deck, const BeamDevice& device, const BiasPoint& bias,
                   const BeamSteadyState& state) {
  const Structure& s = device.structure;
  const std::int64_t nx = s.nx, nz = s.nz, nv = s.n_valleys(), np = s.subbands;
  PointResult point;
  point.bias = bias;
  point.status = PointStatus::kConverged;
  add_numbers(device, state, &point);
  point.add("x", s.x_nm, {nx}, "nm");
  point.add("z", s.z_nm, {nz}, "nm");
  point.add("current_x", scaled(state.fluxes.current, kCurrentUnit_a_m), {nx + 1}, "A/m");
  point.add("energy_flux", scaled(state.fluxes.energy_flux, kPowerUnit_w_m), {nx + 1}, "W/m");
  if (!state.fluxes.phonon_power.empty())
    point.add("phonon_power", scaled(state.fluxes.phonon_power, kPowerUnit_w_m * 1e9),
              {std::ssize(state.fluxes.phonon_power) / nx, nx}, "W/m^2");
  if (deck.output.has("potential")) point.add("potential", state.field.potential_v, {nx, nz}, "V");
  if (deck.output.has("density")) {
    point.add("density", state.field.density_nm3, {nx, nz}, "nm^-3");
    point.add("sheet_density", state.fluxes.sheet_nm2, {nv, np, nx}, "nm^-2");
  }
  if (deck.output.has("subbands")) {
    std::vector<double> energy;
    for (int v = 0; v < nv; ++v)
      for (int p = 0; p < np; ++p)
        for (int i = 0; i < nx; ++i) energy.push_back(state.field.energy(s, v, p, i));
    point.add("subband_energy", energy, {nv, np, nx}, "eV");
  }
  return point;
}

}  // namespace

std::vector<PointResult> beam_points(const Deck& deck, Progress& progress) {
  const Structure s = make_structure(deck);
  const TransportProblem problem = make_transport_problem(deck, s);
  const Equilibrium source = solve_contact(deck, s, 0), drain = solve_contact(deck, s, s.nx - 1);
  const BeamDevice device{.model = deck,
                          .structure = s,
                          .problem = problem,
                          .contacts = {source, drain},
                          .mesh = {.dh_ev = deck.mesh.dh_ev,
                                   .n_kappa = deck.mesh.n_kappa,
                                   .window_ev = deck.mesh.window_ev},
                          .tolerance_v = deck.run.tol_v};
  std::vector<PointResult> points;
  for (const BiasPoint& bias : deck.points) {
    progress.report("bias points", std::ssize(points), std::ssize(deck.points));
    const BeamSteadyState state = solve_beam_point(device, bias, progress);
    points.push_back(report(deck, device, bias, state));
    const auto& n = points.back().numbers;
    progress.log(name_of(bias) + ": I = " + brief(n.at("current_a_per_m")) + " A/m, spread " +
                 brief(n.at("current_spread_a_per_m")) + " A/m, " + std::to_string(state.outer) +
                 " outer steps, " + std::to_string(state.sweeps) + " line solves");
  }
  return points;
}

}  // namespace quasi::mosfet
