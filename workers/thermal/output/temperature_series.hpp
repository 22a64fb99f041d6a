#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workers/io/hdf5.hpp"

namespace quasi::thermal {

/// Collects values that exist once a temperature, and writes each name as one array
/// `/by_temperature/NAME` [T][…]. Shorter first axes are filled with NaN at their end, and so is
/// everything at a temperature that lacks the name.
class TemperatureSeries {
 public:
  explicit TemperatureSeries(std::size_t n_temperatures) : n_temperatures_(n_temperatures) {}

  /// @param shape  of the values at this temperature; axes after the first agree among temperatures
  void add(std::size_t temperature, const std::string& name, std::vector<double> values,
           std::vector<std::int64_t> shape, const char* units);
  /// @throws StorageError
  void write(H5Writer& out) const;

 private:
  struct Array {
    std::vector<std::vector<double>> values;  ///< [T]
    std::vector<std::int64_t> shape;          ///< largest of all temperatures
    std::string units;
  };
  std::size_t n_temperatures_;
  std::map<std::string, Array> arrays_;
};

}  // namespace quasi::thermal
