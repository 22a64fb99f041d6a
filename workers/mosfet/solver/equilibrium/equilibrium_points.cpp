#include "workers/mosfet/solver/equilibrium/equilibrium_points.hpp"

#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

namespace quasi::mosfet {
namespace {

PointResult equilibrium_point(const Deck& deck, const Structure& s, const BiasPoint& bias,
                              const Equilibrium& state) {
  PointResult point;
  point.bias = bias;
  point.status = PointStatus::kEquilibrium;
  const std::int64_t nx = s.nx, nz = s.nz, nv = s.n_valleys(), np = s.subbands;
  point.add("x", s.x_nm, {nx}, "nm");
  point.add("z", s.z_nm, {nz}, "nm");
  if (deck.output.has("potential")) point.add("potential", state.potential_v, {nx, nz}, "V");
  if (deck.output.has("density")) {
    point.add("density", state.density_nm3, {nx, nz}, "nm^-3");
    point.add("sheet_density", state.sheet_nm2, {nv, np, nx}, "nm^-2");
  }
  if (deck.output.has("subbands")) {
    std::vector<double> energy;
    for (int v = 0; v < nv; ++v)
      for (int p = 0; p < np; ++p)
        for (int i = 0; i < nx; ++i) energy.push_back(state.energy(s, v, p, i));
    point.add("subband_energy", energy, {nv, np, nx}, "eV");
  }
  if (deck.output.has("psi"))
    point.add("psi", state.subbands.psi, {s.n_families(), np, nx, nz}, "nm^-1/2");
  const auto steps = static_cast<std::int64_t>(state.newton_v.size());
  point.add("history/newton", state.newton_v, {steps}, "V");
  const int middle = (s.nx - 1) / 2;
  point.numbers["steps"] = static_cast<double>(steps);
  point.numbers["potential_mid_v"] =
      state.potential_v[static_cast<std::size_t>(middle) * s.nz + (s.nz - 1) / 2];
  point.numbers["sheet_mid_per_nm2"] = state.sheet_total_nm2(s, middle);
  double charge = 0.0;
  for (int i = 0; i < s.nx; ++i) charge += state.sheet_total_nm2(s, i) * s.dx_nm;
  point.numbers["charge_per_nm"] = charge;
  return point;
}

}  // namespace

std::vector<PointResult> equilibrium_points(const Deck& deck, Progress& progress) {
  const Structure s = make_structure(deck);
  const Equilibrium source = solve_contact(deck, s, 0);
  const Equilibrium drain = solve_contact(deck, s, s.nx - 1);
  std::vector<PointResult> points;
  for (const BiasPoint& bias : deck.points) {
    progress.report("equilibrium", std::ssize(points), std::ssize(deck.points));
    points.push_back(
        equilibrium_point(deck, s, bias, solve_equilibrium(deck, s, bias, source, drain)));
  }
  return points;
}

}  // namespace quasi::mosfet
