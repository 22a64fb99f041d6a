#include <algorithm>
#include <cstdio>

#include "workers/mosfet/output/summary.hpp"

namespace quasi::mosfet {
namespace {

using nlohmann::json;

double largest_transconductance(const nlohmann::json& curve) {
  const auto gm = curve["transconductance_s_per_m"].get<std::vector<double>>();
  return *std::max_element(gm.begin(), gm.end());
}

std::string equilibrium_table(const json& summary) {
  std::string text = "  V_GS (V)  V_DS (V)  sheet mid (1e12 cm-2)  V mid (V)  Newton\n";
  char line[200];
  for (const auto& point : summary["points"]) {
    std::snprintf(line, sizeof line, "%10.4f%10.4f%23.5f%11.6f%8d\n", point["vgs_v"].get<double>(),
                  point["vds_v"].get<double>(), point["sheet_mid_per_nm2"].get<double>() * 100.0,
                  point["potential_mid_v"].get<double>(), point["steps"].get<int>());
    text += line;
  }
  return text;
}

std::string mobility_table(const json& summary) {
  std::string text = "  V_GS (V)  sheet (1e12 cm-2)  E_eff (MV/cm)  mobility (cm2/Vs)\n";
  char line[200];
  for (const auto& point : summary["points"]) {
    std::snprintf(line, sizeof line, "%10.4f%19.5f%15.5f%19.2f\n", point["vgs_v"].get<double>(),
                  point["sheet_per_nm2"].get<double>() * 100.0,
                  point["effective_field_mv_per_cm"].get<double>(),
                  point["mobility_cm2_per_v_s"].get<double>());
    text += line;
  }
  return text;
}

std::string mesh_error_line(const json& point) {
  std::string axes;
  char part[100];
  for (const char* axis : {"nw", "nphi", "dh", "nkappa", "nx", "nz"}) {
    const std::string name = std::string("mesh_") + axis;
    if (!point.contains(name + "_error_a_per_m")) continue;
    std::snprintf(part, sizeof part, " %s %.3g", axis,
                  point[name + "_error_a_per_m"].get<double>());
    axes += part;
    if (!point.contains(name + "_order")) {
      axes += " (order not observed)";
      continue;
    }
    std::snprintf(part, sizeof part, " (order %.1f)", point[name + "_order"].get<double>());
    axes += part;
  }
  if (axes.empty()) return {};
  std::snprintf(part, sizeof part, "%20s ", "");
  std::string text = part;
  if (!point.contains("mesh_error_a_per_m"))
    return text + "mesh error not known, because an axis is missing;" + axes + "\n";
  std::snprintf(part, sizeof part, "mesh error %.3g A/m, of which",
                point["mesh_error_a_per_m"].get<double>());
  return text + part + axes + "\n";
}

// Formats the small-signal figures of a point, or nothing if it has none.
std::string small_signal_line(const json& point) {
  if (!point.contains("transconductance_s_per_m")) return {};
  char part[120];
  std::snprintf(part, sizeof part, "%20s ", "");
  std::string text = part;
  const auto add = [&](const char* name, double unit, const char* form) {
    if (!point.contains(name)) return;
    std::snprintf(part, sizeof part, form, point[name].get<double>() / unit);
    text += part;
  };
  add("transconductance_s_per_m", 1.0, "g_m %.4g");
  add("transconductance_mesh_error_s_per_m", 1.0, " ± %.2g");
  add("output_conductance_s_per_m", 1.0, ", g_ds %.4g");
  add("output_conductance_mesh_error_s_per_m", 1.0, " ± %.2g");
  text += " S/m";
  add("gate_capacitance_f_per_m", 1e-9, ", C_GG %.4g");
  add("gate_capacitance_mesh_error_f_per_m", 1e-9, " ± %.2g");
  if (point.contains("gate_capacitance_f_per_m")) text += " nF/m";
  add("cutoff_hz", 1e9, ", f_T %.4g GHz");
  if (!point.contains("cutoff_hz"))
    add("cutoff_extrapolated_hz", 1e9, ", f_T %.4g GHz (extrapolated)");
  add("oscillation_hz", 1e9, ", f_max %.4g GHz");
  if (!point.contains("oscillation_hz"))
    add("oscillation_extrapolated_hz", 1e9, ", f_max %.4g GHz (extrapolated)");
  return text + "\n";
}

std::string remark_lines(const json& point) {
  std::string text;
  if (point.contains("tunnel_share")) {
    char line[100];
    std::snprintf(line, sizeof line, "%21stunnelling carries %.3g A/m, %.2f %% of I\n", "",
                  point["tunnel_current_a_per_m"].get<double>(),
                  100.0 * point["tunnel_share"].get<double>());
    text += line;
  }
  if (point.contains("remarks"))
    for (const auto& remark : point["remarks"])
      text += std::string(20, ' ') + " " + remark.get<std::string>() + "\n";
  return text;
}

// Formats a figure and its error, or nothing if the figure is absent.
std::string figure_text(const json& from, const std::string& name, const std::string& units,
                        const char* form) {
  if (!from.contains(name + units)) return {};
  char part[100];
  std::snprintf(part, sizeof part, form, from[name + units].get<double>(),
                from[name + "_error" + units].get<double>());
  return part;
}

std::string derived_lines(const json& derived) {
  std::string text;
  char part[100];
  for (const auto& curve : derived["curves"]) {
    std::snprintf(part, sizeof part, "V_DS = %g V: largest g_m %.4g S/m",
                  curve["vds_v"].get<double>(), largest_transconductance(curve));
    text += part;
    text += figure_text(curve, "threshold", "_v", ", V_th %.4f ± %.2g V");
    text += figure_text(curve, "threshold_extrapolated", "_v", ", by the tangent %.4f ± %.2g V");
    const std::string swing =
        figure_text(curve, "subthreshold_swing", "_mv_per_decade", ", swing %.1f ± %.2g mV/decade");
    text += swing.empty() ? ", no swing: needs two resolved points below threshold" : swing;
    text += figure_text(curve, "on_off_ratio", "", ", I_on/I_off %.4g ± %.2g");
    text += "\n";
  }
  return text + figure_text(derived, "dibl", "_mv_per_v", "DIBL %.1f ± %.2g mV/V\n");
}

std::string unsteady_line(const json& summary) {
  const std::string time_limit = status_name(PointStatus::kTimeLimit);
  const auto unsteady = std::count_if(
      summary["points"].begin(), summary["points"].end(),
      [&](const json& point) { return point["status"].get<std::string>() == time_limit; });
  if (unsteady == 0) return {};
  return std::to_string(unsteady) + " of " + std::to_string(summary["points"].size()) +
         " points reached run.t_end_fs before they were steady (spread and drift above "
         "run.steady_tol of I and above "
         "run.steady_floor_a_per_m); raise run.t_end_fs or the tolerance\n";
}

// Formats the time of all points with the errors of their mesh, or nothing without these errors.
std::string mesh_study_line(const json& summary) {
  if (!summary.contains("seconds") || !summary["seconds"].contains("mesh_errors")) return {};
  const double points_s = summary["seconds"]["points"].get<double>(),
               errors_s = summary["seconds"]["mesh_errors"].get<double>();
  const std::size_t count = summary["points"].size();
  char line[160];
  std::snprintf(line, sizeof line,
                "%zu point%s with mesh errors: %.3g s, of which %.3g s for the errors; %.3g s a "
                "point\n",
                count, count == 1 ? "" : "s", points_s + errors_s, errors_s,
                (points_s + errors_s) / static_cast<double>(count));
  return line;
}

std::string current_table(const json& summary) {
  std::string text =
      "  V_GS (V)  V_DS (V)       I (A/m)    spread     drift  I/I_bal   t (fs)   steps  "
      "status\n";
  char line[200];
  for (const auto& point : summary["points"]) {
    std::snprintf(line, sizeof line, "%10.4f%10.4f%14.6g%10.3g%10.3g%9.3f%9.1f%8d  %s\n",
                  point["vgs_v"].get<double>(), point["vds_v"].get<double>(),
                  point["current_a_per_m"].get<double>(),
                  point["current_spread_a_per_m"].get<double>(),
                  point["current_drift_a_per_m"].get<double>(),
                  point["ballistic_ratio"].get<double>(), point["time_fs"].get<double>(),
                  point["steps"].get<int>(), point["status"].get<std::string>().c_str());
    text += line + small_signal_line(point) + remark_lines(point) + mesh_error_line(point);
  }
  text += unsteady_line(summary) + mesh_study_line(summary);
  return summary.contains("derived") ? text + derived_lines(summary["derived"]) : text;
}

}  // namespace

std::string summary_table(const json& summary) {
  if (summary["mode"] == "equilibrium") return equilibrium_table(summary);
  if (summary["mode"] == "mobility") return mobility_table(summary);
  return current_table(summary);
}

}  // namespace quasi::mosfet
