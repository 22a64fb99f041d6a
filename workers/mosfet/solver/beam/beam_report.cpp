#include "workers/mosfet/solver/beam/beam_report.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/kernels/wave/wave_noise_kernels.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/source_drain_tunnelling.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"
#include "workers/mosfet/solver/verdict/point_verdict.hpp"

namespace quasi::mosfet {
namespace {

/// One e/fs·eV/nm is this number of W/m.
constexpr double kPowerUnit_w_m = kCurrentUnit_a_m;

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

// Returns the largest ratio over states and columns of f̄ in the highest cell of H to the largest f̄.
double top_share(const BeamSteadyState& state) {
  const BeamGrid& grid = state.grid;
  double top = 0.0, largest = 0.0;
  for (std::size_t at = 0; at < state.mean.size(); ++at) {
    const int k = static_cast<int>(at % grid.n_h);
    const double filling = state.mean[at] * grid.boltzmann(k);
    largest = std::max(largest, filling);
    if (k + 1 == grid.n_h) top = std::max(top, filling);
  }
  return largest > 0.0 ? top / largest : 0.0;
}

// Returns Σ w over the electrons of one valley of every state and column, eV/nm², with w = H − ε at
// the centre of each cell of H. The volumes are those of BeamGeometry, added over κ.
std::vector<double> kinetic_energy(const BeamDevice& device, const BeamSteadyState& state) {
  const Structure& s = device.structure;
  const BeamGrid& grid = state.grid;
  const BeamFactors factors =
      make_beam_factors({.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx, .edge_ev = {}});
  std::vector<double> sum(static_cast<std::size_t>(s.n_valleys()) * s.subbands * s.nx, 0.0);
  std::vector<double> nodes(static_cast<std::size_t>(s.nx)), faces(nodes.size() + 1);
  for (int at = 0; at < s.n_valleys() * s.subbands; ++at) {
    for (int i = 0; i < s.nx; ++i)
      nodes[i] = state.field.energy(s, at / s.subbands, at % s.subbands, i);
    face_energies(nodes.data(), s.nx, faces.data());
#pragma omp parallel for schedule(static)
    for (int i = 0; i < s.nx; ++i)
      for (int k = 0; k < grid.n_h; ++k) {
        const std::size_t column = static_cast<std::size_t>(at) * s.nx + i;
        sum[column] += factors.density[at] * beam_states(grid, nodes[i], &faces[i], k) *
                       grid.boltzmann(k) * state.mean[column * grid.n_h + k] *
                       (grid.centre_ev(k) - nodes[i]);
      }
  }
  return sum;
}

// Adds velocity and kinetic energy per electron. The velocity of a column belongs to the mean of
// the conserved fluxes through its faces.
void add_electron_fields(const OutputSettings& output, const BeamDevice& device,
                         const BeamSteadyState& state, PointResult* point) {
  const Structure& s = device.structure;
  const std::vector<std::int64_t> shape{s.n_valleys(), s.subbands, s.nx};
  const std::vector<double>& sheet = state.fluxes.sheet_nm2;
  if (output.has("velocity")) {
    std::vector<double> flux(sheet.size());
    for (std::size_t column = 0; column < flux.size(); ++column) {
      const std::size_t face = column / s.nx * (s.nx + 1) + column % s.nx;
      flux[column] =
          0.5 * (state.fluxes.state_current[face] + state.fluxes.state_current[face + 1]);
    }
    add_per_electron("velocity", "nm/fs", flux, sheet, shape, point);
  }
  if (output.has("energy"))
    add_per_electron("energy", "eV", kinetic_energy(device, state), sheet, shape, point);
  if (output.has("psi"))
    point->add("psi", state.field.subbands.psi, {s.n_families(), s.subbands, s.nx, s.nz},
               "nm^-1/2");
}

// Adds the current that tunnels to the fluxes through all faces, and its share to the numbers.
void add_tunnelling(const BeamDevice& device, const BeamSteadyState& state, BeamFluxes* fluxes,
                    PointResult* point) {
  const Structure& s = device.structure;
  BeamLevels levels{.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx};
  for (int v = 0; v < s.n_valleys(); ++v)
    for (int p = 0; p < s.subbands; ++p)
      for (int i = 0; i < s.nx; ++i) levels.edge_ev.push_back(state.field.energy(s, v, p, i));
  const TunnelCurrent tunnelled = source_drain_tunnelling(state.grid, levels, state.mean);
  for (double& current : fluxes->current) current += tunnelled.electrons;
  for (double& flux : fluxes->energy_flux) flux += tunnelled.energy;
  const double all = fluxes->current[fluxes->current.size() / 2];
  point->numbers["tunnel_current_a_per_m"] = tunnelled.electrons * kCurrentUnit_a_m;
  point->numbers["tunnel_share"] = all != 0.0 ? tunnelled.electrons / all : 0.0;
}

void add_numbers(const BeamDevice& device, const BeamSteadyState& state, const BeamFluxes& fluxes,
                 PointResult* point) {
  auto& n = point->numbers;
  const std::vector<double>& current = fluxes.current;
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
  n["barrier_height_ev"] =
      barrier_height_ev(device.structure, state.field.subbands.energy_ev, point->bias.vds_v);
  if (device.model.neutral_inflow) {
    n["inflow_scale_source"] = state.inflow_scale[0];
    n["inflow_scale_drain"] = state.inflow_scale[1];
  }
  // Landauer's limit belongs to the electrons above the barrier.
  const auto tunnelled = n.find("tunnel_current_a_per_m");
  n["ballistic_ratio"] = ballistic_ratio(
      n["current_a_per_m"] - (tunnelled == n.end() ? 0.0 : tunnelled->second), ballistic);
  n["gate_charge_per_nm"] = terminal_charge(device.problem, state.field.potential_v).gate;
  n["energy_defect_w_per_m"] = state.fluxes.energy_defect * kPowerUnit_w_m;
  n["top_share"] = top_share(state);
  add_judged_numbers(
      device.model, device.structure,
      {.bias = point->bias,
       .energy_ev = state.field.subbands.energy_ev,
       .sheet_nm2 = state.fluxes.sheet_nm2,
       .inflow_scale = std::max({1.0, state.inflow_scale[0], state.inflow_scale[1]})},
      point);
}

}  // namespace

PointResult report_beam_point(const Deck& deck, const BeamDevice& device, const BiasPoint& bias,
                              const BeamSteadyState& state) {
  const Structure& s = device.structure;
  const std::int64_t nx = s.nx, nz = s.nz, nv = s.n_valleys(), np = s.subbands;
  PointResult point;
  point.bias = bias;
  BeamFluxes fluxes = state.fluxes;
  if (deck.run.tunnelling) add_tunnelling(device, state, &fluxes, &point);
  add_numbers(device, state, fluxes, &point);
  point.status =
      judge_point(deck.run, point).resolved ? PointStatus::kConverged : PointStatus::kUnresolved;
  point.add("x", s.x_nm, {nx}, "nm");
  point.add("z", s.z_nm, {nz}, "nm");
  point.add("current_x", scaled(fluxes.current, kCurrentUnit_a_m), {nx + 1}, "A/m");
  point.add("energy_flux", scaled(fluxes.energy_flux, kPowerUnit_w_m), {nx + 1}, "W/m");
  // The roughness, which takes no power, follows the phonons of the deck.
  const std::int64_t phonons = std::ssize(deck.scattering.processes);
  if (phonons > 0 && !state.fluxes.phonon_power.empty()) {
    std::vector<double> power = scaled(state.fluxes.phonon_power, kPowerUnit_w_m * 1e9);
    power.resize(static_cast<std::size_t>(phonons * nx));
    point.add("phonon_power", power, {phonons, nx}, "W/m^2");
  }
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
  add_electron_fields(deck.output, device, state, &point);
  return point;
}

std::string log_of_beam_point(const PointResult& point, const BeamSteadyState& state) {
  const auto& n = point.numbers;
  return name_of(point.bias) + ": I = " + brief(n.at("current_a_per_m")) + " A/m, spread " +
         brief(n.at("current_spread_a_per_m")) + " A/m, " + std::to_string(state.outer) +
         " outer steps, " + std::to_string(state.sweeps) + " line solves; " + brief(state.total_s) +
         " s, of which transport " + brief(state.transport_s) + " s, " + status_name(point.status);
}

double beam_cells(const Deck& deck, const Structure& s) {
  double drop_v = 0.0;
  for (const BiasPoint& bias : deck.points) drop_v = std::max(drop_v, std::fabs(bias.vds_v));
  // Margin below the lowest level, and the ladder of levels in the film.
  constexpr double kBelow_ev = 0.1 + 0.2;
  const double cells_of_h = (deck.mesh.window_ev + drop_v + kBelow_ev) / deck.mesh.dh_ev;
  return 2.0 * s.n_valleys() * s.subbands * s.nx * cells_of_h * deck.mesh.n_kappa;
}

double beam_point_bytes(const Deck& deck, const Structure& s) {
  constexpr int kDirections = 60;  // of GMRES; six subbands take 30 to 50
  const double cells = 0.5 * beam_cells(deck, s), rows = cells / deck.mesh.n_kappa;
  const double elastic_tables = (deck.scattering.roughness.height_nm > 0.0 ? s.subbands : 0.0) +
                                (deck.scattering.impurities ? 1.0 : 0.0);
  double bytes = beam_bytes(cells, rows, elastic_tables);
  // Volumes at nodes, faces and edges and areas, at two levels, and g of two stages.
  constexpr double kValuesOfTransient = 12.0;
  if (deck.run.mode == RunMode::kTransient) bytes += 8.0 * kValuesOfTransient * cells;
  if (deck.small_signal.frequencies_hz.empty()) return bytes;
  const int states = s.n_valleys() * s.subbands;
  const WaveShape shape{.n_states = states,
                        .nx = s.nx,
                        .n_h = static_cast<int>(std::ceil(rows / states / s.nx)),
                        .n_kappa = deck.mesh.n_kappa,
                        .nz = s.nz,
                        .n_levels = s.n_families() * s.subbands,
                        .subbands = s.subbands,
                        .neutral = deck.neutral_inflow};
  const double noise = deck.small_signal.noise ? wave_noise_bytes(shape, kDirections) : 0.0;
  return bytes + std::max(wave_bytes(shape, kDirections), noise);
}

}  // namespace quasi::mosfet
