#include "workers/mosfet/point_result.hpp"

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

void write_point_file(const std::filesystem::path& path, const PointResult& point) {
  H5Writer file(path);
  write_point(&file, "", point);
  std::string names;
  for (const auto& [name, array] : point.arrays) names += name + "\n";
  file.write_text("/arrays", names);
  file.commit();
}

PointResult read_point_file(const std::filesystem::path& path) {
  const H5Reader file(path);
  PointResult point;
  point.bias = {file.number("/vgs_v"), file.number("/vds_v")};
  point.status = file.text("/status");
  if (file.has("/numbers"))
    for (const std::string& name : file.children("/numbers"))
      point.numbers[name] = file.number("/numbers/" + name);
  const std::string names = file.text("/arrays");
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t end = names.find('\n', from);
    const std::string name = names.substr(from, end - from);
    point.add(name, file.doubles("/" + name), file.shape("/" + name),
              file.text_attribute("/" + name, "units"));
    from = end + 1;
  }
  return point;
}

}  // namespace quasi::mosfet
