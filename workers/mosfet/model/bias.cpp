#include "workers/mosfet/model/bias.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::mosfet {

double Waveform::at(double t) const {
  if (t_fs.empty()) return 0.0;
  const auto upper = std::upper_bound(t_fs.begin(), t_fs.end(), t);
  if (upper == t_fs.begin()) return value_v.front();
  if (upper == t_fs.end()) return value_v.back();
  const auto k = static_cast<std::size_t>(upper - t_fs.begin());
  const double share = (t - t_fs[k - 1]) / (t_fs[k] - t_fs[k - 1]);
  return value_v[k - 1] + share * (value_v[k] - value_v[k - 1]);
}

double Waveform::next_corner(double t) const {
  const auto upper = std::upper_bound(t_fs.begin(), t_fs.end(), t);
  return upper == t_fs.end() ? INFINITY : *upper;
}

bool Waveform::moves(double t) const {
  const auto upper = std::upper_bound(t_fs.begin(), t_fs.end(), t);
  if (upper == t_fs.begin() || upper == t_fs.end()) return false;
  const auto k = static_cast<std::size_t>(upper - t_fs.begin());
  return value_v[k] != value_v[k - 1];
}

}  // namespace quasi::mosfet
