#include "workers/mosfet/solver/sweep/derived.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

// Returns dy/dx at every point of an uneven grid, from the parabola through three neighbours, or
// from a chord if there are two points.
std::vector<double> derivative(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  std::vector<double> slope(n);
  for (std::size_t k = 0; k < n; ++k) {
    if (n == 2) {
      slope[k] = (y[1] - y[0]) / (x[1] - x[0]);
      continue;
    }
    const std::size_t a = std::clamp<std::size_t>(k, 1, n - 2) - 1, b = a + 1, c = a + 2;
    const double left = (y[b] - y[a]) / (x[b] - x[a]), right = (y[c] - y[b]) / (x[c] - x[b]);
    const double bend = (right - left) / (x[c] - x[a]);
    slope[k] = left + bend * (2.0 * x[k] - x[a] - x[b]);
  }
  return slope;
}

std::optional<double> constant_current_threshold(const TransferCurve& curve, double threshold) {
  for (std::size_t k = 0; k + 1 < curve.vgs_v.size(); ++k) {
    const double low = curve.current_a_per_m[k], high = curve.current_a_per_m[k + 1];
    if (!(low > 0.0 && low <= threshold && high > threshold)) continue;
    const double share = std::log(threshold / low) / std::log(high / low);
    return curve.vgs_v[k] + share * (curve.vgs_v[k + 1] - curve.vgs_v[k]);
  }
  return {};
}

std::optional<double> extrapolated_threshold(const TransferCurve& curve) {
  if (curve.vgs_v.size() < 3) return {};
  const auto& gm = curve.transconductance_s_per_m;
  const auto at = static_cast<std::size_t>(std::max_element(gm.begin(), gm.end()) - gm.begin());
  if (gm[at] <= 0.0) return {};
  return curve.vgs_v[at] - curve.current_a_per_m[at] / gm[at] - 0.5 * curve.vds_v;
}

std::optional<double> smallest_swing(const TransferCurve& curve) {
  std::optional<double> smallest;
  for (std::size_t k = 0; k + 1 < curve.vgs_v.size(); ++k) {
    const double low = curve.current_a_per_m[k], high = curve.current_a_per_m[k + 1];
    if (!(low > 0.0 && high > low)) continue;
    const double swing = 1e3 * (curve.vgs_v[k + 1] - curve.vgs_v[k]) / std::log10(high / low);
    if (!smallest || swing < *smallest) smallest = swing;
  }
  return smallest;
}

}  // namespace

DerivedFigures derive_figures(const std::vector<IvPoint>& points, double threshold_a_per_m) {
  std::map<double, std::vector<IvPoint>> by_drain;
  for (const IvPoint& point : points) by_drain[point.bias.vds_v].push_back(point);
  DerivedFigures figures;
  for (auto& [vds, row] : by_drain) {
    std::sort(row.begin(), row.end(),
              [](const IvPoint& a, const IvPoint& b) { return a.bias.vgs_v < b.bias.vgs_v; });
    row.erase(std::unique(
                  row.begin(), row.end(),
                  [](const IvPoint& a, const IvPoint& b) { return a.bias.vgs_v == b.bias.vgs_v; }),
              row.end());
    if (row.size() < 2) continue;
    TransferCurve curve{.vds_v = vds};
    std::vector<double> charge_c_per_m;
    for (const IvPoint& point : row) {
      curve.vgs_v.push_back(point.bias.vgs_v);
      curve.current_a_per_m.push_back(point.current_a_per_m);
      charge_c_per_m.push_back(point.gate_charge_per_nm * 1e9 * units::kElementaryCharge_c);
    }
    curve.transconductance_s_per_m = derivative(curve.vgs_v, curve.current_a_per_m);
    curve.gate_capacitance_f_per_m = derivative(curve.vgs_v, charge_c_per_m);
    curve.threshold_v = constant_current_threshold(curve, threshold_a_per_m);
    curve.threshold_extrapolated_v = extrapolated_threshold(curve);
    curve.swing_mv_per_decade = smallest_swing(curve);
    figures.curves.push_back(std::move(curve));
  }
  const TransferCurve *low = nullptr, *high = nullptr;
  for (const TransferCurve& curve : figures.curves) {
    if (!curve.threshold_v || curve.vds_v <= 0.0) continue;
    if (low == nullptr) low = &curve;
    high = &curve;
  }
  if (low != nullptr && high != low)
    figures.dibl_mv_per_v =
        1e3 * (*low->threshold_v - *high->threshold_v) / (high->vds_v - low->vds_v);
  return figures;
}

}  // namespace quasi::mosfet
