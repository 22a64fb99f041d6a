#include "workers/mosfet/solver/point_result.hpp"

#include <utility>

namespace quasi::mosfet {

void PointResult::add(const std::string& name, std::vector<double> values,
                      std::vector<std::int64_t> shape, std::string units) {
  arrays[name] = {std::move(values), std::move(shape), std::move(units)};
}

void write_point(H5Writer* file, const std::string& group, const PointResult& point) {
  file->write_scalar(group + "/vgs_v", point.bias.vgs_v, "V");
  file->write_scalar(group + "/vds_v", point.bias.vds_v, "V");
  file->write_text(group + "/status", point.status);
  for (const auto& [name, value] : point.numbers) file->write_scalar(group + "/numbers/" + name, value, "");
  for (const auto& [name, array] : point.arrays)
    file->write(group + "/" + name, std::span<const double>(array.values),
                std::span<const std::int64_t>(array.shape), array.units);
}

}  // namespace quasi::mosfet
