#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"

#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {
namespace {

RowRule rule_of_occupied(bool smooth, bool split) {
  if (split) return smooth ? RowRule::kSplitSmooth : RowRule::kSplitDirect;
  return smooth ? RowRule::kSmoothOccupied : RowRule::kDirectOccupied;
}

void check_row(double x, double occupation, std::int64_t l, std::int64_t n) {
  if (occupation != 0.0 && occupation != 1.0)
    throw InvalidInput("occupation of band " + std::to_string(n) + " is " +
                       std::to_string(occupation) + "; the response of Σ needs 0 or 1");
  if (!std::isfinite(x))
    throw InvalidInput("E − E_n of outer state " + std::to_string(l) + " and band " +
                       std::to_string(n) + " is not finite");
}

}  // namespace

std::vector<ResponseRow> make_response_rows(const ResponseTerms& terms, const PoleRules& rules) {
  const auto [n_left, n_right] = terms.x_ry.extent;
  std::vector<ResponseRow> rows(static_cast<std::size_t>(n_left * n_right));
  if (terms.only_closed) return rows;
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < n_right; ++n) {
      const double x = terms.x_ry(l, n), f = terms.occupation(n);
      check_row(x, f, l, n);
      ResponseRow& row = rows[static_cast<std::size_t>(l * n_right + n)];
      row.x_ry = x;
      const bool smooth = crosses_no_pole(x, f, rules);
      if (f == 1.0) {
        row.rule = rule_of_occupied(smooth, terms.screened_exchange);
        const PoleInterval near = dropped_empty(x, rules.half_width_ry, rules.max_ratio);
        row.low_tau = 1.0 / near.high;
        row.high_tau = 1.0 / near.low;
        continue;
      }
      row.rule = smooth ? RowRule::kSmoothEmpty : RowRule::kDirectEmpty;
      if (terms.other_x_ry.data == nullptr || std::isnan(terms.other_x_ry(l, n))) continue;
      row.other_x_ry = terms.other_x_ry(l, n);
      row.rule = smooth && crosses_no_pole(row.other_x_ry, f, rules) ? RowRule::kTwoSmooth
                                                                     : RowRule::kTwoDirect;
    }
  return rows;
}

std::vector<std::int64_t> segments_of(const ResponseTerms& terms) {
  const std::int64_t n_right = terms.x_ry.extent[1];
  if (terms.segment_end.empty()) return {n_right};
  std::int64_t last = 0;
  for (const std::int64_t end : terms.segment_end) {
    if (end <= last)
      throw InvalidInput("a segment of bands ends at " + std::to_string(end) + ", not above " +
                         std::to_string(last));
    last = end;
  }
  if (last != n_right)
    throw InvalidInput("the segments of bands end at " + std::to_string(last) + ", not at " +
                       std::to_string(n_right));
  return terms.segment_end;
}

}  // namespace quasi::gw
