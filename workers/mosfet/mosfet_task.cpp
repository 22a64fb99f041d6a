#include "workers/mosfet/mosfet_task.hpp"

#include <cblas.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "workers/backend/error.hpp"
#include "workers/mosfet/point_result.hpp"
#include "workers/mosfet/solver/equilibrium.hpp"

namespace quasi {
namespace mosfet {
namespace {

const char* mode_name(RunMode mode) {
  switch (mode) {
    case RunMode::kEquilibrium: return "equilibrium";
    case RunMode::kTransient: return "transient";
    case RunMode::kSteady: return "steady";
  }
  return "";
}

PointResult equilibrium_point(const Deck& deck, const Structure& s, const BiasPoint& bias,
                              const Equilibrium& state) {
  PointResult point;
  point.bias = bias;
  point.status = "equilibrium";
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

class MosfetTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device&) const override {
    const Deck deck = read_deck(source);
    const Structure s = make_structure(deck);
    const double angles = deck.mesh.range == AngleRange::kHalf ? deck.mesh.nphi / 2 + 1 : deck.mesh.nphi;
    const double points = s.n_valleys() * s.subbands * static_cast<double>(s.nx) * deck.mesh.nw * angles;
    return {{"ok", true},
            {"warnings", deck.notes},
            {"plan",
             {{"mode", mode_name(deck.run.mode)},
              {"bias_points", deck.points.size()},
              {"phase_space_points", points},
              {"wmax_ev", deck.mesh.wmax_ev},
              {"memory_bytes", 3.0 * 8.0 * points + 12.0 * std::pow(s.nx * s.nz, 2.0)}}}};
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Deck deck = read_deck(options.deck);
    for (const std::string& note : deck.notes) progress.log(note);
    openblas_set_num_threads(1);  // Columns run in parallel; each calls BLAS on small matrices.
    const Structure s = make_structure(deck);
    const Equilibrium source = solve_contact(deck, s, 0);
    const Equilibrium drain = solve_contact(deck, s, s.nx - 1);

    H5Writer file(options.output_directory / "result.h5");
    nlohmann::json summary{{"mode", mode_name(deck.run.mode)}, {"points", nlohmann::json::array()}};
    const auto total = static_cast<std::int64_t>(deck.points.size());
    for (std::int64_t k = 0; k < total; ++k) {
      const BiasPoint bias = deck.points[static_cast<std::size_t>(k)];
      progress.report("equilibrium", k, total);
      const Equilibrium state = solve_equilibrium(deck, s, bias, source, drain);
      const PointResult point = equilibrium_point(deck, s, bias, state);
      write_point(&file, "/points/" + std::to_string(k), point);
      nlohmann::json row{{"vgs_v", bias.vgs_v}, {"vds_v", bias.vds_v}, {"status", point.status}};
      for (const auto& [name, value] : point.numbers) row[name] = value;
      summary["points"].push_back(row);
    }
    file.attribute("/", "kind", "mosfet");
    file.attribute("/", "statistics",
                   deck.statistics == StatisticsKind::kFermi ? "fermi" : "maxwell");
    file.commit();
    return summary;
  }

  std::string table(const nlohmann::json& summary) const override {
    std::string text = "  V_GS (V)  V_DS (V)  sheet mid (1e12 cm-2)  V mid (V)     Newton\n";
    for (const auto& point : summary["points"]) {
      char line[160];
      std::snprintf(line, sizeof line, "%10.4f%10.4f%23.5f%11.6f%11d\n",
                    point["vgs_v"].get<double>(), point["vds_v"].get<double>(),
                    point["sheet_mid_per_nm2"].get<double>() * 100.0,
                    point["potential_mid_v"].get<double>(),
                    static_cast<int>(point["steps"].get<double>()));
      text += line;
    }
    return text;
  }
};

}  // namespace
}  // namespace mosfet

std::unique_ptr<Task> make_mosfet_task() { return std::make_unique<mosfet::MosfetTask>(); }

}  // namespace quasi
