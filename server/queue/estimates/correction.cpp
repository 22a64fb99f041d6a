#include "server/queue/estimates/correction.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::server {

double correction_of(std::vector<double> ratios, const CorrectionBounds& bounds) {
  if (ratios.size() < kLeastRatios) return 1.0;
  const auto rank = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(ratios.size())));
  const auto at = ratios.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(ratios.begin(), at, ratios.end());
  return std::clamp(*at, bounds.least, bounds.most);
}

void Corrections::set(const EstimateRatios& measured) {
  const CorrectionBounds& bounds =
      measured.quantity == Quantity::kTime ? kTimeBounds : kMemoryBounds;
  factors_[{measured.quantity, measured.kind, measured.pool}] =
      correction_of(measured.ratios, bounds);
}

double Corrections::factor(Quantity quantity, const std::string& kind,
                           const std::string& pool) const {
  const auto found = factors_.find({quantity, kind, pool});
  return found == factors_.end() ? 1.0 : found->second;
}

}  // namespace quasi::server
