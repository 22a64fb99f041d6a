#include "workers/mosfet/solver/transport/mobility.hpp"

#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/table_reader.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/kane_band.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kFieldUnit_mv_cm = 10.0;  // 1 V/nm = 10 MV/cm.

// Links beyond the highest energy are dropped, so that elastic processes alone leave the highest
// cells without loss. Such cells are left out if they hold less than this share of their subband.
constexpr double kNegligibleShare = 1e-6;

}  // namespace

Mobility low_field_mobility(const DeviceModel& model, const TransportProblem& problem,
                            const Subbands& levels, const std::vector<double>& fermi_ev) {
  const Structure& s = problem.structure;
  const auto rows = static_cast<std::size_t>(problem.rows());
  const auto cells = static_cast<std::size_t>(problem.n_states()) * s.nx;
  const auto count = static_cast<std::size_t>(s.n_families()) * s.subbands;
  std::vector<double> overlap(count * count * s.nx), roughness, filled(rows), gain(rows),
      loss(rows);
  overlaps(problem, levels.psi.data(), overlap.data());
  LevelCoupling coupling{levels.energy_ev.data(), overlap.data()};
  if (!problem.roughness_spectrum.empty()) {
    roughness.resize(overlap.size());
    roughness_strengths(problem, levels.psi.data(), roughness.data());
    coupling.roughness = roughness.data();
  }
  // Φ̃ in units of K; with pdf_scale = 1 the kernels get true occupations.
  const auto states_at = [&](int valley, int l) {
    return problem.full_filling(valley, 1.0) * problem.grid().kane(l);
  };
  std::vector<double> occupied(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const int l = static_cast<int>(row % problem.nw), i = static_cast<int>(row / problem.nw % s.nx);
    const int state = static_cast<int>(row / problem.nw / s.nx), v = state / s.subbands;
    const double level = levels.energy_ev[(static_cast<std::size_t>(s.family_of[v]) * s.subbands +
                                           state % s.subbands) *
                                              s.nx +
                                          i];
    occupied[row] =
        occupation(model, fermi_ev[i] - level - s.valleys[v].offset_ev - problem.grid().w(l));
    filled[row] = states_at(v, l) * occupied[row];
  }
  scattering_rates(problem, coupling, 1.0, filled.data(), gain.data(), loss.data());

  Mobility mobility{std::vector<double>(cells),
                    std::vector<double>(static_cast<std::size_t>(s.nx), 0.0)};
  std::vector<double> total(static_cast<std::size_t>(s.nx), 0.0);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const int state = static_cast<int>(cell) / s.nx, v = state / s.subbands;
    double moved = 0.0, density = 0.0;
    for (int l = 0; l < problem.nw; ++l) density += filled[cell * problem.nw + l];
    for (int l = 0; l < problem.nw; ++l) {
      const std::size_t row = cell * problem.nw + l;
      const double f = occupied[row],
                   speed = problem.speed_nm_fs[static_cast<std::size_t>(v) * problem.nw + l];
      const double slope = (problem.pauli ? f * (1.0 - f) : f) / problem.kt_ev;  // −∂f/∂w
      if (!(loss[row] > 0.0) && filled[row] < kNegligibleShare * density) continue;
      if (!(loss[row] > 0.0))
        throw InvalidInput("scattering: nothing scatters electrons of pair " + std::to_string(v) +
                           " at w = " + shown(problem.grid().w(l)) +
                           " eV, and their mobility has no limit; enable a process that does");
      moved += 0.5 * states_at(v, l) * speed * speed * slope / loss[row];
    }
    mobility.state_nm2_v_fs[cell] = density > 0.0 ? moved / density : 0.0;
    mobility.mean_nm2_v_fs[cell % s.nx] += moved;
    total[cell % s.nx] += density;
  }
  for (int i = 0; i < s.nx; ++i) mobility.mean_nm2_v_fs[i] /= total[i];
  return mobility;
}

PointResult mobility_point(const Deck& deck, const Structure& device, const BiasPoint& bias) {
  const Structure column = column_structure(device, (device.nx - 1) / 2);
  const Equilibrium state = solve_gated_column(deck, column, bias);
  const TransportProblem problem = make_transport_problem(deck, column);
  const Mobility mobility = low_field_mobility(deck, problem, state.subbands, {0.0});
  const double sheet = state.sheet_total_nm2(column, 0);
  if (!(sheet > 0.0) || !std::isfinite(mobility.mean_nm2_v_fs[0]))
    throw InvalidInput("bias.vgs: at " + shown(bias.vgs_v) +
                       " V the film holds so few electrons that their density underflows to " +
                       shown(sheet) + " nm-2 and no mobility is defined; raise it");
  double field = 0.0, weight = 0.0;
  for (int j = 1; j < column.nz - 1; ++j) {
    const double n = state.density_nm3[j];
    field +=
        n * std::fabs(state.potential_v[j + 1] - state.potential_v[j - 1]) / (2.0 * column.dz_nm);
    weight += n;
  }
  PointResult point;
  point.bias = bias;
  point.status = PointStatus::kMobility;
  point.numbers["sheet_per_nm2"] = sheet;
  point.numbers["effective_field_mv_per_cm"] = field / weight * kFieldUnit_mv_cm;
  point.numbers["mobility_cm2_per_v_s"] = mobility.mean_nm2_v_fs[0] * kMobilityUnit_cm2_v_s;
  point.numbers["steps"] = static_cast<double>(state.newton_v.size());
  const std::int64_t nv = column.n_valleys(), np = column.subbands;
  std::vector<double> energy, each(mobility.state_nm2_v_fs);
  for (double& value : each) value *= kMobilityUnit_cm2_v_s;
  for (int v = 0; v < nv; ++v)
    for (int p = 0; p < np; ++p) energy.push_back(state.energy(column, v, p, 0));
  point.add("z", column.z_nm, {column.nz}, "nm");
  point.add("potential", state.potential_v, {column.nz}, "V");
  point.add("density", state.density_nm3, {column.nz}, "nm^-3");
  point.add("subband_energy", energy, {nv, np}, "eV");
  point.add("sheet_density", state.sheet_nm2, {nv, np}, "nm^-2");
  point.add("mobility", each, {nv, np}, "cm^2/(V s)");
  return point;
}

}  // namespace quasi::mosfet
