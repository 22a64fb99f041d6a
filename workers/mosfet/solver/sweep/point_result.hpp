#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workers/io/hdf5.hpp"
#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// Ending of a bias point.
enum class PointStatus {
  kConverged,    ///< steady within run.steady_tol, and no law is violated
  kUnresolved,   ///< steady, but a law is violated (judge_point())
  kTimeLimit,    ///< not steady at run.t_end_fs
  kFinished,     ///< a transient at run.t_end_fs
  kEquilibrium,  ///< Schrödinger and Poisson alone
  kDriftDiffusion,
  kMobility,
};
/// Returns the name of a status in result.h5, iv.csv and the summary: "converged", "unresolved",
/// "time_limit", "finished", "equilibrium", "drift-diffusion", "mobility".
const char* status_name(PointStatus status);
/// Returns the status with this name. @throws InvalidInput for any other name.
PointStatus status_named(const std::string& name);

/// Result of one bias point: named numbers and named arrays for any file.
struct PointResult {
  struct Array {
    std::vector<double> values;
    std::vector<std::int64_t> shape;
    std::string units;
  };

  BiasPoint bias;
  PointStatus status = PointStatus::kConverged;
  /// Numbers by name, e.g. current_a_per_m. Names end in units, except ratios and counts.
  std::map<std::string, double> numbers;
  std::map<std::string, Array> arrays;  ///< e.g. potential [nx][nz]; "history/t" for tables

  void add(const std::string& name, std::vector<double> values, std::vector<std::int64_t> shape,
           std::string units);
};

/// Returns the units that the name of a number ends in: "A/m" for "current_a_per_m", "1" for a name
/// without units.
std::string_view units_of_number(std::string_view name);

/// Writes every number and array of `point` under `group` ("" for the top of a separate file).
void write_point(H5Writer* file, const std::string& group, const PointResult& point);

}  // namespace quasi::mosfet
