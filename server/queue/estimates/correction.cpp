#include "server/queue/estimates/correction.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::server {

double correction_of(std::vector<double> ratios) {
  if (ratios.size() < kLeastRatios) return 1.0;
  const auto rank = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(ratios.size())));
  const auto at = ratios.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(ratios.begin(), at, ratios.end());
  return std::clamp(*at, kLeastCorrection, kMostCorrection);
}

}  // namespace quasi::server
