#pragma once

#include <map>
#include <string>
#include <vector>

#include "workers/io/hdf5.hpp"
#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// What one bias point produced: named numbers and named arrays, ready for any file.
struct PointResult {
  struct Array {
    std::vector<double> values;
    std::vector<std::int64_t> shape;
    std::string units;
  };

  BiasPoint bias;
  std::string status;                    ///< "converged", "time_limit", "equilibrium"
  std::map<std::string, double> numbers; ///< e.g. current_a_per_m; names end in units
  std::map<std::string, Array> arrays;   ///< e.g. potential [nx][nz]; "history/t" for tables

  void add(const std::string& name, std::vector<double> values, std::vector<std::int64_t> shape,
           std::string units);
};

/// Writes every number and array of `point` under `group` ("" for the root of a file of its own).
void write_point(H5Writer* file, const std::string& group, const PointResult& point);

}  // namespace quasi::mosfet
