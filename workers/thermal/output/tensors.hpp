#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Returns tensors for result.h5, row-major in sequence, times `factor`.
std::vector<double> flat(const std::vector<Mat3>& tensors, double factor);
/// Returns a tensor for the summary as a list of rows, times `factor`.
nlohmann::json json_of(const Mat3& tensor, double factor);

}  // namespace quasi::thermal
