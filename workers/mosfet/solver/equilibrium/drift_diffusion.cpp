#include "workers/mosfet/solver/equilibrium/drift_diffusion.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/input/table_reader.hpp"
#include "workers/mosfet/kernels/electrostatics/largest_magnitude.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/transport/mobility.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kMaxGummel = 200;
constexpr double kTolerance_ev = 1e-8;

/// Returns Bernoulli's function x/(e^x − 1).
double bernoulli(double x) { return std::fabs(x) < 1e-8 ? 1.0 - 0.5 * x : x / std::expm1(x); }

struct Flow {
  std::vector<double> fermi_ev;  ///< [nx]
  std::vector<double> current;   ///< between columns [nx−1], e/(fs nm)
};

// Solves continuity at given levels. The conductances between columns are in series.
Flow solve_flow(const TransportProblem& problem, const Equilibrium& state, const Mobility& mobility,
                const std::vector<double>& fermi_ev, const BiasPoint& bias) {
  const Structure& s = problem.structure;
  const double kt = problem.kt_ev;
  std::vector<double> conductance(static_cast<std::size_t>(s.nx) - 1, 0.0);
  for (int cell = 0; cell < problem.n_states(); ++cell)
    for (int i = 0; i + 1 < s.nx; ++i) {
      const std::size_t at = static_cast<std::size_t>(cell) * s.nx + i;
      const double a = state.sheet_nm2[at] * std::exp(-fermi_ev[i] / kt);
      const double b = state.sheet_nm2[at + 1] * std::exp(-fermi_ev[i + 1] / kt);
      if (!(a > 0.0 && b > 0.0)) continue;
      const double mean = 0.5 * (mobility.state_nm2_v_fs[at] + mobility.state_nm2_v_fs[at + 1]);
      conductance[i] += 2.0 * mean * kt / s.dx_nm * bernoulli(std::log(a / b)) * a;
    }
  double resistance = 0.0;
  for (const double g : conductance) resistance += 1.0 / g;
  if (!std::isfinite(resistance))
    throw NotConverged(
        "drift-diffusion at " + name_of(bias) +
        ": a column holds so few electrons that its conductance underflows to 0; raise bias.vgs or "
        "material.temperature_k");
  // u = e^{E_F/kT} falls from 1 to e^{−V_DS/kT}. It is summed up from its smaller end, whose digits
  // would be lost in the larger one.
  const double span = -std::expm1(-bias.vds_v / kt), last = std::exp(-bias.vds_v / kt);
  Flow flow{std::vector<double>(static_cast<std::size_t>(s.nx)),
            std::vector<double>(conductance.size())};
  double u = std::min(1.0, last);
  const auto fall = [&](int i) {
    return span / resistance / conductance[i];
  };  // drop of u between columns i and i+1
  if (bias.vds_v >= 0.0)
    for (int i = s.nx - 2; i > 0; --i) flow.fermi_ev[i] = kt * std::log(u += fall(i));
  else
    for (int i = 1; i + 1 < s.nx; ++i) flow.fermi_ev[i] = kt * std::log(u -= fall(i - 1));
  flow.fermi_ev.front() = 0.0;
  flow.fermi_ev.back() = -bias.vds_v;
  for (int i = 0; i + 1 < s.nx; ++i) flow.current[i] = conductance[i] * fall(i);
  return flow;
}

PointResult report(const Deck& deck, const TransportProblem& problem, const BiasPoint& bias,
                   const Equilibrium& state, const Mobility& mobility, const Flow& flow) {
  const Structure& s = problem.structure;
  const std::int64_t nx = s.nx, nz = s.nz, nv = s.n_valleys(), np = s.subbands;
  PointResult point;
  point.bias = bias;
  point.status = PointStatus::kDriftDiffusion;
  std::vector<double> profile(flow.current);
  for (double& value : profile) value *= kCurrentUnit_a_m;
  const auto [low, high] = std::minmax_element(profile.begin(), profile.end());
  auto& n = point.numbers;
  n["current_a_per_m"] = n["current_mean_a_per_m"] = profile[profile.size() / 2];
  n["current_source_a_per_m"] = profile.front();
  n["current_drain_a_per_m"] = profile.back();
  n["current_spread_a_per_m"] = *high - *low;
  n["current_drift_a_per_m"] = 0.0;
  n["time_fs"] = 0.0;
  const double ballistic =
      ballistic_current(deck, problem, state.subbands.energy_ev, bias.vds_v) * kCurrentUnit_a_m;
  n["ballistic_a_per_m"] = ballistic;
  n["barrier_height_ev"] = barrier_height_ev(s, state.subbands.energy_ev, bias.vds_v);
  n["ballistic_ratio"] = ballistic_ratio(n["current_a_per_m"], ballistic);
  n["gate_charge_per_nm"] = terminal_charge(problem, state.potential_v).gate;
  std::vector<double> mean(mobility.mean_nm2_v_fs), energy;
  for (double& value : mean) value *= kMobilityUnit_cm2_v_s;
  for (int v = 0; v < nv; ++v)
    for (int p = 0; p < np; ++p)
      for (int i = 0; i < nx; ++i) energy.push_back(state.energy(s, v, p, i));
  point.add("x", s.x_nm, {nx}, "nm");
  point.add("z", s.z_nm, {nz}, "nm");
  point.add("current_x", profile, {nx - 1}, "A/m");
  point.add("fermi_level", flow.fermi_ev, {nx}, "eV");
  point.add("mobility", mean, {nx}, "cm^2/(V s)");
  if (deck.output.has("potential")) point.add("potential", state.potential_v, {nx, nz}, "V");
  if (deck.output.has("density")) {
    point.add("density", state.density_nm3, {nx, nz}, "nm^-3");
    point.add("sheet_density", state.sheet_nm2, {nv, np, nx}, "nm^-2");
  }
  if (deck.output.has("subbands")) point.add("subband_energy", energy, {nv, np, nx}, "eV");
  return point;
}

}  // namespace

std::vector<PointResult> drift_diffusion_points(const Deck& deck, Progress& progress) {
  const Structure s = make_structure(deck);
  const TransportProblem problem = make_transport_problem(deck, s);
  const Equilibrium source = solve_contact(deck, s, 0), drain = solve_contact(deck, s, s.nx - 1);
  std::vector<PointResult> points;
  for (const BiasPoint& bias : deck.points) {
    progress.report("drift-diffusion", std::ssize(points), std::ssize(deck.points));
    std::vector<double> fermi_ev = quasi_fermi_ev(deck, s, bias.vds_v), start_v;
    std::string history;
    for (int iteration = 1;; ++iteration) {
      progress.throw_if_cancelled();
      const Equilibrium state = solve_quasi_equilibrium(
          deck, s, bias, source, drain, {.fermi_ev = fermi_ev, .potential_v = start_v});
      const Mobility mobility = low_field_mobility(deck, problem, state.subbands, fermi_ev);
      const Flow flow = solve_flow(problem, state, mobility, fermi_ev, bias);
      std::vector<double> step_ev(flow.fermi_ev);
      for (int i = 0; i < s.nx; ++i) step_ev[i] -= fermi_ev[i];
      const double change = largest_magnitude(step_ev);
      if (!std::isfinite(change))
        throw NotConverged("drift-diffusion at " + name_of(bias) +
                           ": E_F became infinite or undefined; refine the mesh");
      if (iteration > kMaxGummel)
        throw NotConverged("drift-diffusion at " + name_of(bias) +
                           ": the iteration did not converge; |δE_F| in eV was" + history);
      if (iteration > kMaxGummel - 8) (history += ' ') += shown(change);
      if (change < kTolerance_ev) {
        points.push_back(report(deck, problem, bias, state, mobility, flow));
        points.back().numbers["steps"] = iteration;
        break;
      }
      fermi_ev = flow.fermi_ev;
      start_v = state.potential_v;
    }
  }
  return points;
}

}  // namespace quasi::mosfet
