#include "workers/mosfet/mosfet_task.hpp"

#include <cblas.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <tuple>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/equilibrium/drift_diffusion.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/sweep/derived.hpp"
#include "workers/mosfet/solver/sweep/mesh_study.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/transport/mobility.hpp"

namespace quasi {
namespace mosfet {
namespace {

const char* mode_name(RunMode mode) {
  switch (mode) {
    case RunMode::kEquilibrium:
      return "equilibrium";
    case RunMode::kTransient:
      return "transient";
    case RunMode::kSteady:
      return "steady";
    case RunMode::kMobility:
      return "mobility";
  }
  return "";
}

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

std::vector<PointResult> mobility_points(const Deck& deck, Progress& progress) {
  const Structure s = make_structure(deck);
  std::vector<PointResult> points;
  for (const BiasPoint& bias : deck.points) {
    progress.report("mobility", std::ssize(points), std::ssize(deck.points));
    points.push_back(mobility_point(deck, s, bias));
  }
  return points;
}

/// True for runs that end with a current at every point.
bool has_currents(const Deck& deck) {
  return deck.run.mode == RunMode::kSteady || deck.run.mode == RunMode::kTransient;
}

std::string csv_row(const PointResult& point) {
  char line[400];
  const auto number = [&](const char* name) { return point.numbers.at(name); };
  std::snprintf(line, sizeof line, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%s\n",
                point.bias.vgs_v, point.bias.vds_v, number("current_a_per_m"),
                number("current_source_a_per_m"), number("current_drain_a_per_m"),
                number("current_spread_a_per_m"), number("current_drift_a_per_m"),
                number("time_fs"), number("steps"), status_name(point.status));
  return line;
}
constexpr const char* kCsvHeader =
    "vgs_v,vds_v,current_a_per_m,current_source_a_per_m,current_drain_a_per_m,current_spread_a_per_"
    "m,"
    "current_drift_a_per_m,time_fs,steps,status\n";

std::vector<PointResult> sweep_points(const Deck& deck, const RunOptions& options,
                                      Progress& progress) {
  const auto csv = options.output_directory / "iv.csv";
  std::map<int, std::string> rows;
  SweepOptions sweep;
  sweep.devices = options.devices;
  sweep.checkpoint_directory = options.checkpoint_directory;
  sweep.output_directory = options.output_directory;
  // Every finished point is on disk at once, for people; the checkpoint keeps it for the machine.
  sweep.on_finished = [&](int point, const PointResult& result) {
    rows[point] = csv_row(result);
    const auto aside =
        options.output_directory / ".iv.csv.new";  // Whole or not at all, whenever the power fails.
    std::ofstream out(aside);
    out << kCsvHeader;
    for (const auto& [index, row] : rows) out << row;
    out.close();
    std::error_code failure;
    if (out) std::filesystem::rename(aside, csv, failure);
    if (!out || failure)
      throw StorageError("cannot write '" + csv.string() + "'; is the disk full?");
  };
  std::vector<PointResult> points = run_sweep(deck, sweep, progress);
  if (deck.run.mesh_study) add_mesh_study(deck, sweep, progress, &points);
  return points;
}

DerivedFigures derived_of(const Deck& deck, const std::vector<PointResult>& points) {
  if (deck.run.mode != RunMode::kSteady)
    return {};  // A transient's last current is no characteristic.
  std::vector<IvPoint> family;
  for (const PointResult& point : points)
    family.push_back(
        {point.bias, point.numbers.at("current_a_per_m"), point.numbers.at("gate_charge_per_nm")});
  return derive_figures(family, deck.output.threshold_a_per_m);
}

void write_derived(const DerivedFigures& figures, const std::filesystem::path& directory,
                   H5Writer* file) {
  if (figures.curves.empty()) return;
  std::string csv =
      "vds_v,vgs_v,current_a_per_m,transconductance_s_per_m,gate_capacitance_f_per_m\n";
  char line[200];
  int at = 0;
  for (const TransferCurve& curve : figures.curves) {
    const std::string group = "/derived/" + std::to_string(at++);
    const std::int64_t n = std::ssize(curve.vgs_v);
    file->write_scalar(group + "/vds", curve.vds_v, "V");
    file->write(group + "/vgs", curve.vgs_v, {n}, "V");
    file->write(group + "/transconductance", curve.transconductance_s_per_m, {n}, "S/m");
    file->write(group + "/gate_capacitance", curve.gate_capacitance_f_per_m, {n}, "F/m");
    if (curve.threshold_v) file->write_scalar(group + "/threshold", *curve.threshold_v, "V");
    if (curve.threshold_extrapolated_v)
      file->write_scalar(group + "/threshold_extrapolated", *curve.threshold_extrapolated_v, "V");
    if (curve.swing_mv_per_decade)
      file->write_scalar(group + "/subthreshold_swing", *curve.swing_mv_per_decade, "mV/decade");
    for (std::size_t k = 0; k < curve.vgs_v.size(); ++k) {
      std::snprintf(line, sizeof line, "%.17g,%.17g,%.17g,%.17g,%.17g\n", curve.vds_v,
                    curve.vgs_v[k], curve.current_a_per_m[k], curve.transconductance_s_per_m[k],
                    curve.gate_capacitance_f_per_m[k]);
      csv += line;
    }
  }
  if (figures.dibl_mv_per_v) file->write_scalar("/derived/dibl", *figures.dibl_mv_per_v, "mV/V");
  std::ofstream out(directory / "derived.csv");
  out << csv;
  if (!out.flush()) throw StorageError("cannot write derived.csv; is the disk full?");
}

nlohmann::json summary_of(const DerivedFigures& figures) {
  nlohmann::json summary{{"curves", nlohmann::json::array()}};
  for (const TransferCurve& curve : figures.curves) {
    nlohmann::json row{{"vds_v", curve.vds_v},
                       {"vgs_v", curve.vgs_v},
                       {"transconductance_s_per_m", curve.transconductance_s_per_m},
                       {"gate_capacitance_f_per_m", curve.gate_capacitance_f_per_m}};
    if (curve.threshold_v) row["threshold_v"] = *curve.threshold_v;
    if (curve.threshold_extrapolated_v)
      row["threshold_extrapolated_v"] = *curve.threshold_extrapolated_v;
    if (curve.swing_mv_per_decade)
      row["subthreshold_swing_mv_per_decade"] = *curve.swing_mv_per_decade;
    summary["curves"].push_back(row);
  }
  if (figures.dibl_mv_per_v) summary["dibl_mv_per_v"] = *figures.dibl_mv_per_v;
  return summary;
}

const char* transport_name(TransportModel model) {
  switch (model) {
    case TransportModel::kBoltzmann:
      return "boltzmann";
    case TransportModel::kBallistic:
      return "ballistic";
    case TransportModel::kDriftDiffusion:
      return "drift-diffusion";
  }
  return "";
}

void write_results(const Deck& deck, const std::filesystem::path& directory,
                   const std::vector<PointResult>& points) {
  H5Writer file(directory / "result.h5");
  const auto count = std::ssize(points);
  std::string csv = kCsvHeader;
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    write_point(&file, "/points/" + std::to_string(k), points[static_cast<std::size_t>(k)]);
    if (has_currents(deck)) csv += csv_row(points[static_cast<std::size_t>(k)]);
  }
  const auto column = [&](const std::string& name, const char* units, auto value) {
    std::vector<double> values;
    for (const PointResult& point : points) values.push_back(value(point));
    file.write("/iv/" + name, values, {count}, units);
  };
  column("vgs", "V", [](const PointResult& p) { return p.bias.vgs_v; });
  column("vds", "V", [](const PointResult& p) { return p.bias.vds_v; });
  if (deck.run.mode == RunMode::kMobility) {
    for (const auto& [name, key, units] :
         {std::tuple{"sheet_density", "sheet_per_nm2", "nm^-2"},
          {"effective_field", "effective_field_mv_per_cm", "MV/cm"},
          {"mobility", "mobility_cm2_per_v_s", "cm^2/(V s)"}})
      column(name, units,
             [key = std::string(key)](const PointResult& p) { return p.numbers.at(key); });
    std::ofstream out(directory / "mobility.csv");
    out << "vgs_v,sheet_per_nm2,effective_field_mv_per_cm,mobility_cm2_per_v_s\n";
    char line[160];
    for (const PointResult& p : points) {
      std::snprintf(line, sizeof line, "%.17g,%.17g,%.17g,%.17g\n", p.bias.vgs_v,
                    p.numbers.at("sheet_per_nm2"), p.numbers.at("effective_field_mv_per_cm"),
                    p.numbers.at("mobility_cm2_per_v_s"));
      out << line;
    }
    if (!out.flush()) throw StorageError("cannot write mobility.csv; is the disk full?");
  }
  write_derived(derived_of(deck, points), directory, &file);
  if (has_currents(deck)) {
    for (const auto& [name, key, units] : {std::tuple{"I_source", "current_source_a_per_m", "A/m"},
                                           {"I_drain", "current_drain_a_per_m", "A/m"},
                                           {"I_mid", "current_a_per_m", "A/m"},
                                           {"I_mean", "current_mean_a_per_m", "A/m"},
                                           {"spread", "current_spread_a_per_m", "A/m"},
                                           {"drift", "current_drift_a_per_m", "A/m"},
                                           {"t", "time_fs", "fs"},
                                           {"steps", "steps", "1"}})
      column(name, units,
             [key = std::string(key)](const PointResult& p) { return p.numbers.at(key); });
    std::ofstream out(directory / "iv.csv");
    out << csv;
    if (!out.flush()) throw StorageError("cannot write iv.csv; is the disk full?");
  }
  file.attribute("/", "kind", "mosfet");
  file.attribute("/", "version", QUASI_VERSION);
  file.attribute("/", "mode", mode_name(deck.run.mode));
  file.attribute("/", "transport", transport_name(deck.run.transport));
  file.attribute("/", "statistics",
                 deck.statistics == StatisticsKind::kFermi ? "fermi" : "maxwell");
  file.commit();
}

nlohmann::json summary_of(const Deck& deck, const std::vector<PointResult>& points) {
  nlohmann::json summary{{"mode", mode_name(deck.run.mode)},
                         {"transport", transport_name(deck.run.transport)},
                         {"points", nlohmann::json::array()}};
  if (deck.run.mode == RunMode::kSteady) summary["derived"] = summary_of(derived_of(deck, points));
  for (const PointResult& point : points) {
    nlohmann::json row{{"vgs_v", point.bias.vgs_v},
                       {"vds_v", point.bias.vds_v},
                       {"status", status_name(point.status)}};
    for (const auto& [name, value] : point.numbers) row[name] = value;
    if (row.contains("steps")) row["steps"] = static_cast<std::int64_t>(point.numbers.at("steps"));
    summary["points"].push_back(row);
  }
  return summary;
}

std::vector<PointResult> solve_points(const Deck& deck, const RunOptions& options,
                                      Progress& progress) {
  const bool sweeps = (deck.run.mode == RunMode::kSteady || deck.run.mode == RunMode::kTransient) &&
                      deck.run.transport != TransportModel::kDriftDiffusion;
  if (options.devices.size() > 1 && !sweeps)
    throw InvalidInput(std::string("run.mode '") + mode_name(deck.run.mode) +
                       "' with run.transport '" + transport_name(deck.run.transport) +
                       "' runs on one device, " + std::to_string(options.devices.size()) +
                       " are named; name one with --device");
  if (deck.run.mode == RunMode::kEquilibrium) return equilibrium_points(deck, progress);
  if (deck.run.mode == RunMode::kMobility) return mobility_points(deck, progress);
  if (deck.run.transport == TransportModel::kDriftDiffusion)
    return drift_diffusion_points(deck, progress);
  return sweep_points(deck, options, progress);
}

double largest_transconductance(const nlohmann::json& curve) {
  const auto gm = curve["transconductance_s_per_m"].get<std::vector<double>>();
  return *std::max_element(gm.begin(), gm.end());
}

/// True for runs that move a pdf; the others have Schrödinger and Poisson alone.
bool has_pdf(const Deck& deck) {
  return has_currents(deck) && deck.run.transport != TransportModel::kDriftDiffusion;
}

/// What the run will hold. @param points  of phase space
std::int64_t planned_bytes(const Deck& deck, const Structure& s, double points,
                           const Device& device) {
  const double nodes = static_cast<double>(s.nx) * s.nz;
  const double poisson = 3.0 * 8.0 * nodes * s.nz;  // responses, blocks and inverses of the columns
  if (!has_pdf(deck)) return static_cast<std::int64_t>(poisson);
  // The state, two stages, what a failed batch goes back to, and what a finished point hands on.
  if (device.backend == Backend::kCpu)
    return static_cast<std::int64_t>(5.0 * 8.0 * points + poisson);
  return static_cast<std::int64_t>(3.0 * 8.0 * points + 12.0 * nodes * nodes);
}

class MosfetTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    const Deck deck = read_deck(source.path, source.settings);
    const Structure s = make_structure(deck);
    const double angles =
        deck.mesh.range == AngleRange::kHalf ? deck.mesh.nphi / 2 + 1 : deck.mesh.nphi;
    const double points = has_pdf(deck) ? s.n_valleys() * s.subbands * static_cast<double>(s.nx) *
                                              deck.mesh.nw * angles
                                        : 0.0;
    return {{"ok", true},
            {"warnings", deck.notes},
            {"plan",
             {{"mode", mode_name(deck.run.mode)},
              {"bias_points", deck.points.size()},
              {"phase_space_points", static_cast<std::int64_t>(points)},
              {"wmax_ev", deck.mesh.wmax_ev},
              {"memory_bytes", planned_bytes(deck, s, points, device)}}}};
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Deck deck = read_deck(options.deck.path, options.deck.settings);
    for (const std::string& note : deck.notes) progress.log(note);
    openblas_set_num_threads(1);  // Columns run in parallel; each calls BLAS on small matrices.
    const std::vector<PointResult> points = solve_points(deck, options, progress);
    write_results(deck, options.output_directory, points);
    return summary_of(deck, points);
  }

  std::vector<std::string> deck_file_patterns() const override {
    return {"*.toml", "*.csv", "*.dat"};
  }

  /// Chains of bias points spread over them.
  int max_devices() const override { return 64; }

  std::string table(const nlohmann::json& summary) const override {
    std::string text;
    char line[200];
    if (summary["mode"] == "equilibrium") {
      text = "  V_GS (V)  V_DS (V)  sheet mid (1e12 cm-2)  V mid (V)  Newton\n";
      for (const auto& point : summary["points"]) {
        std::snprintf(line, sizeof line, "%10.4f%10.4f%23.5f%11.6f%8d\n",
                      point["vgs_v"].get<double>(), point["vds_v"].get<double>(),
                      point["sheet_mid_per_nm2"].get<double>() * 100.0,
                      point["potential_mid_v"].get<double>(), point["steps"].get<int>());
        text += line;
      }
      return text;
    }
    if (summary["mode"] == "mobility") {
      text = "  V_GS (V)  sheet (1e12 cm-2)  E_eff (MV/cm)  mobility (cm2/Vs)\n";
      for (const auto& point : summary["points"]) {
        std::snprintf(line, sizeof line, "%10.4f%19.5f%15.5f%19.2f\n", point["vgs_v"].get<double>(),
                      point["sheet_per_nm2"].get<double>() * 100.0,
                      point["effective_field_mv_per_cm"].get<double>(),
                      point["mobility_cm2_per_v_s"].get<double>());
        text += line;
      }
      return text;
    }
    text =
        "  V_GS (V)  V_DS (V)       I (A/m)    spread     drift  I/I_bal   t (fs)   steps  "
        "status\n";
    for (const auto& point : summary["points"]) {
      std::snprintf(line, sizeof line, "%10.4f%10.4f%14.6g%10.3g%10.3g%9.3f%9.1f%8d  %s\n",
                    point["vgs_v"].get<double>(), point["vds_v"].get<double>(),
                    point["current_a_per_m"].get<double>(),
                    point["current_spread_a_per_m"].get<double>(),
                    point["current_drift_a_per_m"].get<double>(),
                    point["ballistic_ratio"].get<double>(), point["time_fs"].get<double>(),
                    point["steps"].get<int>(), point["status"].get<std::string>().c_str());
      text += line;
      if (!point.contains("mesh_error_a_per_m")) continue;
      std::snprintf(line, sizeof line, "%20s mesh error %.3g A/m, of which", "",
                    point["mesh_error_a_per_m"].get<double>());
      text += line;
      for (const char* axis : {"nw", "nphi", "nx", "nz"})
        if (const std::string key = std::string("mesh_") + axis + "_error_a_per_m";
            point.contains(key)) {
          std::snprintf(line, sizeof line, " %s %.3g", axis, point[key].get<double>());
          text += line;
        }
      text += "\n";
    }
    const auto unsteady = std::count_if(
        summary["points"].begin(), summary["points"].end(), [](const nlohmann::json& point) {
          return point["status"] == status_name(PointStatus::kTimeLimit);
        });
    if (unsteady > 0)
      text += std::to_string(unsteady) + " of " + std::to_string(summary["points"].size()) +
              " points reached run.t_end_fs before they were steady (spread and drift above "
              "run.steady_tol of I and above "
              "run.steady_floor_A_per_m); raise run.t_end_fs or the tolerance\n";
    if (!summary.contains("derived")) return text;
    for (const auto& curve : summary["derived"]["curves"]) {
      std::snprintf(line, sizeof line, "V_DS = %g V: largest g_m %.4g S/m",
                    curve["vds_v"].get<double>(), largest_transconductance(curve));
      text += line;
      for (const auto& [key, form] :
           {std::pair{"threshold_v", ", V_th %.4f V"},
            {"threshold_extrapolated_v", ", by the tangent %.4f V"},
            {"subthreshold_swing_mv_per_decade", ", swing %.1f mV/decade"}})
        if (curve.contains(key)) {
          std::snprintf(line, sizeof line, form, curve[key].get<double>());
          text += line;
        }
      text += "\n";
    }
    if (summary["derived"].contains("dibl_mv_per_v")) {
      std::snprintf(line, sizeof line, "DIBL %.1f mV/V\n",
                    summary["derived"]["dibl_mv_per_v"].get<double>());
      text += line;
    }
    return text;
  }
};

}  // namespace
}  // namespace mosfet

std::unique_ptr<Task> make_mosfet_task() { return std::make_unique<mosfet::MosfetTask>(); }

}  // namespace quasi
