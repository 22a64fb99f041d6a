#include "workers/thermal/output/temperature_series.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::thermal {

void TemperatureSeries::add(std::size_t temperature, const std::string& name,
                            std::vector<double> values, std::vector<std::int64_t> shape,
                            const char* units) {
  Array& array = arrays_[name];
  array.values.resize(n_temperatures_);
  array.units = units;
  if (array.shape.empty())
    array.shape = std::move(shape);
  else if (!shape.empty())
    array.shape[0] = std::max(array.shape[0], shape[0]);
  array.values[temperature] = std::move(values);
}

void TemperatureSeries::write(H5Writer& out) const {
  for (const auto& [name, array] : arrays_) {
    std::size_t size = 1;
    for (const std::int64_t extent : array.shape) size *= static_cast<std::size_t>(extent);
    std::vector<double> all;
    for (const std::vector<double>& values : array.values) {
      all.insert(all.end(), values.begin(), values.end());
      all.insert(all.end(), size - values.size(), std::nan(""));
    }
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(n_temperatures_)};
    shape.insert(shape.end(), array.shape.begin(), array.shape.end());
    out.write("/by_temperature/" + name, std::span<const double>(all),
              std::span<const std::int64_t>(shape), array.units);
  }
}

}  // namespace quasi::thermal
