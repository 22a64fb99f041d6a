#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Tensors for result.h5, row-major one after the other, times `factor`.
std::vector<double> flat(const std::vector<Mat3>& tensors, double factor);
/// A tensor for the summary: a list of rows, times `factor`.
nlohmann::json json_of(const Mat3& tensor, double factor);
/// "/temperature_NNN".
std::string temperature_group(std::size_t index);

}  // namespace quasi::thermal
