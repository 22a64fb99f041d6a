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

// One interval of a curve on a logarithmic scale.
struct Interval {
  bool rises = false;         ///< both currents are positive and rise
  double width_v = 0;         ///< ΔV_GS
  double slope_per_v = 0;     ///< Δ ln I/ΔV_GS
  double relative_error = 0;  ///< δI/I of both ends, added
};

Interval interval_of(const std::vector<IvPoint>& row, std::size_t k) {
  const IvPoint &low = row[k], &high = row[k + 1];
  Interval interval{.width_v = high.bias.vgs_v - low.bias.vgs_v};
  interval.rises = low.current_a_per_m > 0.0 && high.current_a_per_m > low.current_a_per_m;
  if (!interval.rises) return interval;
  interval.slope_per_v = std::log(high.current_a_per_m / low.current_a_per_m) / interval.width_v;
  interval.relative_error =
      low.error_a_per_m / low.current_a_per_m + high.error_a_per_m / high.current_a_per_m;
  return interval;
}

// Returns the largest change of the slope ln I against the neighbouring intervals.
double slope_change(const std::vector<IvPoint>& row, std::size_t k) {
  const double slope = interval_of(row, k).slope_per_v;
  double change = 0.0;
  for (const std::size_t other : {k - 1, k + 1})
    if (other < row.size() - 1)  // k − 1 wraps around to a large number at k = 0
      if (const Interval beside = interval_of(row, other); beside.rises)
        change = std::max(change, std::fabs(beside.slope_per_v - slope));
  return change;
}

std::optional<FigureOfMerit> constant_current_threshold(const std::vector<IvPoint>& row,
                                                        double threshold) {
  for (std::size_t k = 0; k + 1 < row.size(); ++k) {
    const double low = row[k].current_a_per_m, high = row[k + 1].current_a_per_m;
    if (!(low > 0.0 && low <= threshold && high > threshold)) continue;
    if (!row[k].is_resolved || !row[k + 1].is_resolved) return {};
    const Interval interval = interval_of(row, k);
    const double value = row[k].bias.vgs_v + std::log(threshold / low) / interval.slope_per_v;
    // A chord of a parabola misses it by at most h²/8 times its second derivative.
    const double bend = interval.width_v * slope_change(row, k) / 8.0;
    return FigureOfMerit{value, (interval.relative_error + bend) / interval.slope_per_v};
  }
  return {};
}

std::optional<FigureOfMerit> extrapolated_threshold(const std::vector<IvPoint>& row,
                                                    const TransferCurve& curve) {
  if (row.size() < 3) return {};
  const auto& gm = curve.transconductance_s_per_m;
  const auto at = static_cast<std::size_t>(std::max_element(gm.begin(), gm.end()) - gm.begin());
  if (gm[at] <= 0.0 || !row[at].is_resolved) return {};
  const auto intercept = [&](std::size_t k) {
    return curve.vgs_v[k] - curve.current_a_per_m[k] / gm[k] - 0.5 * curve.vds_v;
  };
  FigureOfMerit found{intercept(at), row[at].error_a_per_m / gm[at]};
  double change = 0.0;
  for (const std::size_t other : {at - 1, at + 1})
    if (other < row.size() && gm[other] > 0.0)
      change = std::max(change, std::fabs(intercept(other) - found.value));
  found.error += change;
  return found;
}

std::optional<FigureOfMerit> smallest_swing(const std::vector<IvPoint>& row) {
  const auto defines = [](const IvPoint& point) {
    return point.is_resolved && point.is_below_threshold;
  };
  std::optional<FigureOfMerit> smallest;
  for (std::size_t k = 0; k + 1 < row.size(); ++k) {
    const Interval interval = interval_of(row, k);
    if (!interval.rises || !defines(row[k]) || !defines(row[k + 1])) continue;
    const double swing = 1e3 * std::log(10.0) / interval.slope_per_v;
    if (smallest && swing >= smallest->value) continue;
    const double relative = interval.relative_error / interval.width_v + slope_change(row, k);
    smallest = FigureOfMerit{swing, swing * relative / interval.slope_per_v};
  }
  return smallest;
}

std::optional<FigureOfMerit> ratio_of_ends(const std::vector<IvPoint>& row) {
  const IvPoint &off = row.front(), &on = row.back();
  if (!off.is_resolved || !on.is_resolved || !(off.current_a_per_m > 0.0)) return {};
  const double ratio = on.current_a_per_m / off.current_a_per_m;
  return FigureOfMerit{ratio, std::fabs(ratio) * off.error_a_per_m / off.current_a_per_m +
                                  on.error_a_per_m / off.current_a_per_m};
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
    curve.threshold_v = constant_current_threshold(row, threshold_a_per_m);
    curve.threshold_extrapolated_v = extrapolated_threshold(row, curve);
    curve.swing_mv_per_decade = smallest_swing(row);
    curve.on_off_ratio = ratio_of_ends(row);
    figures.curves.push_back(std::move(curve));
  }
  const TransferCurve *low = nullptr, *high = nullptr;
  for (const TransferCurve& curve : figures.curves) {
    if (!curve.threshold_v || curve.vds_v <= 0.0) continue;
    if (low == nullptr) low = &curve;
    high = &curve;
  }
  if (low != nullptr && high != low) {
    const double scale = 1e3 / (high->vds_v - low->vds_v);
    figures.dibl_mv_per_v =
        FigureOfMerit{scale * (low->threshold_v->value - high->threshold_v->value),
                      scale * (low->threshold_v->error + high->threshold_v->error)};
  }
  return figures;
}

}  // namespace quasi::mosfet
