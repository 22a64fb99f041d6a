#include "workers/mosfet/output/derived_file.hpp"

#include <cstdio>
#include <fstream>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {

DerivedFigures derived_of(const Deck& deck, const std::vector<PointResult>& points) {
  if (deck.run.mode != RunMode::kSteady)
    return {};  // the last current of a transient is not a characteristic
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

nlohmann::json derived_summary(const DerivedFigures& figures) {
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

}  // namespace quasi::mosfet
