#include "workers/mosfet/solver/sweep/point_result.hpp"

#include <array>
#include <utility>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

constexpr std::array kStatusNames{std::pair{PointStatus::kConverged, "converged"},
                                  std::pair{PointStatus::kUnresolved, "unresolved"},
                                  std::pair{PointStatus::kTimeLimit, "time_limit"},
                                  std::pair{PointStatus::kFinished, "finished"},
                                  std::pair{PointStatus::kEquilibrium, "equilibrium"},
                                  std::pair{PointStatus::kDriftDiffusion, "drift-diffusion"},
                                  std::pair{PointStatus::kMobility, "mobility"}};

}  // namespace

const char* status_name(PointStatus status) {
  for (const auto& [value, name] : kStatusNames)
    if (value == status) return name;
  return "";
}

PointStatus status_named(const std::string& name) {
  for (const auto& [value, known] : kStatusNames)
    if (name == known) return value;
  throw InvalidInput("'" + name + "' is not a status of a bias point");
}

std::string_view units_of_number(std::string_view name) {
  using Units = std::pair<std::string_view, std::string_view>;
  for (const auto& [ending, units] :
       {Units{"_a_per_m", "A/m"}, Units{"_fs", "fs"}, Units{"_ev", "eV"}, Units{"_v", "V"},
        Units{"_per_nm", "e/nm"}, Units{"_per_nm2", "nm^-2"}, Units{"_mv_per_cm", "MV/cm"},
        Units{"_cm2_per_v_s", "cm^2/(V s)"}, Units{"_w_per_m", "W/m"}, Units{"_s_per_m", "S/m"},
        Units{"_f_per_m", "F/m"}, Units{"_hz", "Hz"}})
    if (name.ends_with(ending)) return units;
  return "1";
}

void PointResult::add(const std::string& name, std::vector<double> values,
                      std::vector<std::int64_t> shape, std::string units) {
  arrays[name] = {std::move(values), std::move(shape), std::move(units)};
}

void write_point(H5Writer* file, const std::string& group, const PointResult& point) {
  file->write_scalar(group + "/vgs_v", point.bias.vgs_v, "V");
  file->write_scalar(group + "/vds_v", point.bias.vds_v, "V");
  file->write_text(group + "/status", status_name(point.status));
  for (const auto& [name, value] : point.numbers)
    file->write_scalar(group + "/numbers/" + name, value, units_of_number(name));
  for (const auto& [name, array] : point.arrays)
    file->write(group + "/" + name, std::span<const double>(array.values),
                std::span<const std::int64_t>(array.shape), array.units);
}

}  // namespace quasi::mosfet
