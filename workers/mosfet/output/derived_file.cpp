#include "workers/mosfet/output/derived_file.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {

namespace {

IvPoint iv_point_of(const Deck& deck, const PointResult& point) {
  constexpr double kLeastBarrier_kt = 3.0;
  const auto& n = point.numbers;
  IvPoint found{.bias = point.bias,
                .current_a_per_m = n.at("current_a_per_m"),
                .gate_charge_per_nm = n.at("gate_charge_per_nm")};
  for (const char* name : {"mesh_error_a_per_m", "current_spread_a_per_m", "current_drift_a_per_m"})
    if (const auto error = n.find(name); error != n.end())
      found.error_a_per_m += std::fabs(error->second);
  found.is_resolved =
      point.status == PointStatus::kConverged || point.status == PointStatus::kDriftDiffusion;
  found.is_below_threshold = n.at("barrier_height_ev") >= kLeastBarrier_kt * deck.kt_ev();
  return found;
}

void write_figure(H5Writer* file, const std::string& name,
                  const std::optional<FigureOfMerit>& figure, const char* units) {
  if (!figure) return;
  file->write_scalar(name, figure->value, units);
  file->write_scalar(name + "_error", figure->error, units);
}

// Adds `<name><units>` and `<name>_error<units>`.
void add_figure(nlohmann::json* row, const std::string& name, const std::string& units,
                const std::optional<FigureOfMerit>& figure) {
  if (!figure) return;
  (*row)[name + units] = figure->value;
  (*row)[name + "_error" + units] = figure->error;
}

}  // namespace

DerivedFigures derived_of(const Deck& deck, const std::vector<PointResult>& points) {
  if (deck.run.mode != RunMode::kSteady)
    return {};  // the last current of a transient is not a characteristic
  std::vector<IvPoint> family;
  for (const PointResult& point : points) family.push_back(iv_point_of(deck, point));
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
    write_figure(file, group + "/threshold", curve.threshold_v, "V");
    write_figure(file, group + "/threshold_extrapolated", curve.threshold_extrapolated_v, "V");
    write_figure(file, group + "/subthreshold_swing", curve.swing_mv_per_decade, "mV/decade");
    write_figure(file, group + "/on_off_ratio", curve.on_off_ratio, "1");
    for (std::size_t k = 0; k < curve.vgs_v.size(); ++k) {
      std::snprintf(line, sizeof line, "%.17g,%.17g,%.17g,%.17g,%.17g\n", curve.vds_v,
                    curve.vgs_v[k], curve.current_a_per_m[k], curve.transconductance_s_per_m[k],
                    curve.gate_capacitance_f_per_m[k]);
      csv += line;
    }
  }
  write_figure(file, "/derived/dibl", figures.dibl_mv_per_v, "mV/V");
  std::ofstream out(directory / "derived.csv");
  out << csv;
  if (!out.flush()) throw StorageError("cannot write derived.csv; is the disk full?");
}

nlohmann::json derived_summary(const DerivedFigures& figures) {
  nlohmann::json summary{{"curves", nlohmann::json::array()}};
  for (const TransferCurve& curve : figures.curves) {
    nlohmann::json row{{"vds_v", curve.vds_v},
                       {"vgs_v", curve.vgs_v},
                       {"transconductance_s_per_m", curve.transconductance_s_per_m},
                       {"gate_capacitance_f_per_m", curve.gate_capacitance_f_per_m}};
    add_figure(&row, "threshold", "_v", curve.threshold_v);
    add_figure(&row, "threshold_extrapolated", "_v", curve.threshold_extrapolated_v);
    add_figure(&row, "subthreshold_swing", "_mv_per_decade", curve.swing_mv_per_decade);
    add_figure(&row, "on_off_ratio", "", curve.on_off_ratio);
    summary["curves"].push_back(row);
  }
  add_figure(&summary, "dibl", "_mv_per_v", figures.dibl_mv_per_v);
  return summary;
}

}  // namespace quasi::mosfet
