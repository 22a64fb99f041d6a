#pragma once

#include <array>
#include <string>
#include <vector>

#include "workers/mosfet/model/bias.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"

namespace quasi::mosfet {

/// Checks a running point against the limits of its discretisation. @param largest_w_ev
/// mesh.wmax_ev @throws NotConverged, InvalidInput naming the limit and the key to change
void check_point(const BiasPoint& bias, const PointProgress& at, double time_fs,
                 double largest_w_ev);

/// Checks the factors of a neutral inflow. @param scale  of source and drain @param when  end of
/// the sentence, e.g. the time @throws NotConverged outside 0.2 … 5
void check_inflow_scale(const BiasPoint& bias, const std::array<double, 2>& scale,
                        const std::string& when);

/// Returns warnings about a finished point whose pdf leaves its physical range. judge_point() finds
/// the other remarks.
std::vector<std::string> warnings_of(const BiasPoint& bias, const PointProgress& at);

}  // namespace quasi::mosfet
