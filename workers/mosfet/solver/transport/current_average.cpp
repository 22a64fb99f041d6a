#include "workers/mosfet/solver/transport/current_average.hpp"

#include <algorithm>
#include <cmath>

#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kLengths = 4;  // L, 2L, 4L, 8L

double mean_inside(const std::vector<double>& profile) {
  double sum = 0.0;
  for (std::size_t k = 1; k + 1 < profile.size(); ++k) sum += profile[k];
  return sum / static_cast<double>(profile.size() - 2);
}

}  // namespace

void CurrentAverage::add(double until_fs, const std::vector<double>& integral) {
  const double from_fs = slices_.empty() ? 0.0 : slices_[slices_.size() - width_ + 1];
  if (until_fs <= from_fs) return;
  width_ = integral.size() + 2;
  slices_.insert(slices_.end(), {from_fs, until_fs});
  slices_.insert(slices_.end(), integral.begin(), integral.end());
  std::size_t old = 0;
  while (slices_[old * width_ + 1] <= until_fs - 2.0 * window_fs_ * (1 << (kLengths - 1))) ++old;
  slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(old * width_));
}

void CurrentAverage::restore(std::vector<double> slices, int half_nodes) {
  slices_ = std::move(slices);
  width_ = static_cast<std::size_t>(half_nodes) + 2;
}

// The weight of a slice is the weight at its middle. A window without the middle of any slice is
// replaced by the slice at the window's middle.
std::vector<double> CurrentAverage::average(double from_fs, double until_fs) const {
  std::vector<double> profile(width_ - 2, 0.0);
  double total = 0.0;
  for (std::size_t row = 0; row < slices_.size(); row += width_) {
    const double from = slices_[row], to = slices_[row + 1], middle = 0.5 * (from + to);
    if (middle <= from_fs || middle >= until_fs) continue;
    const double weight =
        std::pow(std::sin(units::kPi * (middle - from_fs) / (until_fs - from_fs)), 2);
    total += weight * (to - from);
    for (std::size_t k = 0; k < profile.size(); ++k) profile[k] += weight * slices_[row + 2 + k];
  }
  const double centre = 0.5 * (from_fs + until_fs);
  for (std::size_t row = 0; total == 0.0; row += width_) {
    if (centre > slices_[row + 1] && row + width_ < slices_.size()) continue;
    total = slices_[row + 1] - slices_[row];
    std::copy_n(slices_.begin() + static_cast<std::ptrdiff_t>(row) + 2, profile.size(),
                profile.begin());
  }
  for (double& value : profile) value /= total;
  return profile;
}

SteadyWindow CurrentAverage::window_of_length(double length, double now,
                                              const SteadyLimit& limit) const {
  SteadyWindow w;
  w.length_fs = length;
  w.profile = average(now - length, now);
  w.mean = mean_inside(w.profile);
  const auto [low, high] = std::minmax_element(w.profile.begin() + 1, w.profile.end() - 1);
  w.spread = *high - *low;
  const auto [least, most] = std::minmax_element(w.profile.begin(), w.profile.end());
  w.spread_contacts = *most - *least;
  w.drift_known = now >= 2.0 * length;
  if (w.drift_known)
    w.drift = std::fabs(w.mean - mean_inside(average(now - 2.0 * length, now - length)));
  w.steady = w.drift_known && std::max(w.spread, w.drift) <
                                  std::max(limit.relative * std::fabs(w.mean), limit.absolute);
  return w;
}

std::optional<SteadyWindow> CurrentAverage::window(const SteadyLimit& limit) const {
  if (slices_.empty()) return {};
  // A window shorter than a slice is replaced by that slice.
  const double now = slices_[slices_.size() - width_ + 1],
               last = now - slices_[slices_.size() - width_];
  const double shortest = std::max(std::min(window_fs_, now), last);
  SteadyWindow best = window_of_length(shortest, now, limit);
  for (int k = 1; k < kLengths && !best.steady; ++k) {
    const double length = shortest * (1 << k);
    if (now < 2.0 * length) break;
    SteadyWindow longer = window_of_length(length, now, limit);
    if (longer.steady || std::max(longer.spread, longer.drift) < std::max(best.spread, best.drift))
      best = std::move(longer);
  }
  return best;
}

}  // namespace quasi::mosfet
