#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"

#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"

namespace quasi::gw {
namespace {

double rule_of(double x_ry, double occupation, const PoleRules& rules) {
  const bool smooth = crosses_no_pole(x_ry, occupation, rules);
  if (occupation == 1.0) return smooth ? row_rule::kSmoothOccupied : row_rule::kDirectOccupied;
  return smooth ? row_rule::kSmoothEmpty : row_rule::kDirectEmpty;
}

}  // namespace

std::vector<double> make_response_rows(const ResponseTerms& terms, const PoleRules& rules) {
  const auto [n_left, n_right] = terms.x_ry.extent;
  if (terms.only_closed)
    return std::vector<double>(static_cast<std::size_t>(n_left * n_right * kResponseRowLength),
                               row_rule::kNone);
  std::vector<double> rows;
  rows.reserve(static_cast<std::size_t>(n_left * n_right * kResponseRowLength));
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_right; ++n) {
      const double x = terms.x_ry(l, n), f = terms.occupation(n);
      if (f != 0.0 && f != 1.0)
        throw InvalidInput("occupation of band " + std::to_string(n) + " is " + std::to_string(f) +
                           "; the response of Σ needs 0 or 1");
      if (!std::isfinite(x))
        throw InvalidInput("E − E_n of outer state " + std::to_string(l) + " and band " +
                           std::to_string(n) + " is not finite");
      rows.push_back(x);
      rows.push_back(rule_of(x, f, rules));
    }
  return rows;
}

}  // namespace quasi::gw
