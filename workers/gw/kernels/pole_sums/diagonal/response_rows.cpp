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

/// Returns the row of one pair without its run.
ResponseRow row_of(const ResponseTerms& terms, const PoleRules& rules, std::int64_t l,
                   std::int64_t n) {
  ResponseRow row;
  if (terms.only_closed) return row;
  const double x = terms.x_ry(l, n), f = terms.occupation(n);
  check_row(x, f, l, n);
  row.x_ry = x;
  const bool smooth = crosses_no_pole(x, f, rules);
  if (f == 1.0) {
    row.rule = rule_of_occupied(smooth, terms.screened_exchange);
    const PoleInterval near = dropped_empty(x, rules.half_width_ry, rules.max_ratio);
    row.low_tau = 1.0 / near.high;
    row.high_tau = 1.0 / near.low;
    return row;
  }
  row.rule = smooth ? RowRule::kSmoothEmpty : RowRule::kDirectEmpty;
  if (terms.other_x_ry.data == nullptr || std::isnan(terms.other_x_ry(l, n))) return row;
  row.other_x_ry = terms.other_x_ry(l, n);
  row.rule = smooth && crosses_no_pole(row.other_x_ry, f, rules) ? RowRule::kTwoSmooth
                                                                 : RowRule::kTwoDirect;
  return row;
}

/// Returns the given ends, or one group of `count` members if there are none.
/// @param kind  names the groups in messages; `members` names what they hold
std::vector<std::int64_t> checked_ends(const std::vector<std::int64_t>& given, std::int64_t count,
                                       const std::string& kind, const std::string& members) {
  std::int64_t last = 0;
  for (const std::int64_t end : given) {
    if (end <= last)
      throw InvalidInput("a " + kind + " of " + members + " ends at " + std::to_string(end) +
                         ", not above " + std::to_string(last));
    last = end;
  }
  if (last != count)
    throw InvalidInput("the " + kind + "s of " + members + " end at " + std::to_string(last) +
                       ", not at " + std::to_string(count));
  return given;
}

/// Gives the rows from `begin` on their runs. Rows of a run get the numbers of its first row.
void set_runs(std::size_t begin, std::vector<ResponseRow>& rows) {
  for (std::size_t first = begin; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end].has_factors_of(rows[first])) ++end;
    for (std::size_t at = first; at < end; ++at) {
      rows[at] = rows[first];
      rows[at].run = static_cast<std::int32_t>(end - at);
    }
    first = end;
  }
}

bool are_equal(double a, double b) { return std::abs(a - b) < kEqualEnergy_ry; }

/// A range of outer states or of bands, [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
};

/// Appends the rows of one group of outer states and one segment of bands. Equal bands of all outer
/// states stand together.
void append(const ResponseTerms& terms, const PoleRules& rules, const Range& group,
            const Range& bands, OrderedRows& to) {
  const std::size_t begin = to.row.size();
  const std::int64_t n_right = terms.x_ry.extent[1];
  for (std::int64_t first = bands.begin; first < bands.end;) {
    const ResponseRow of_first = row_of(terms, rules, group.begin, first);
    std::int64_t end = first + 1;
    while (end < bands.end && row_of(terms, rules, group.begin, end).has_factors_of(of_first))
      ++end;
    for (std::int64_t l = group.begin; l < group.end; ++l)
      for (std::int64_t n = first; n < end; ++n) {
        to.row.push_back(row_of(terms, rules, l, n));
        to.pair.push_back(l * n_right + n);
      }
    first = end;
  }
  set_runs(begin, to.row);
}

}  // namespace

bool ResponseRow::has_factors_of(const ResponseRow& other) const {
  return rule == other.rule && are_equal(x_ry, other.x_ry) &&
         are_equal(other_x_ry, other.other_x_ry);
}

OrderedRows make_response_rows(const ResponseTerms& terms, const PoleRules& rules) {
  const auto [n_left, n_right] = terms.x_ry.extent;
  std::vector<std::int64_t> each;
  for (std::int64_t l = 1; terms.group_end.empty() && l <= n_left; ++l) each.push_back(l);
  OrderedRows ordered;
  ordered.group_end = checked_ends(terms.group_end.empty() ? each : terms.group_end, n_left,
                                   "group", "outer states");
  const std::vector<std::int64_t> segment_end =
      checked_ends(terms.segment_end.empty() ? std::vector{n_right} : terms.segment_end, n_right,
                   "segment", "bands");
  ordered.n_segments = static_cast<std::int64_t>(segment_end.size());
  Range group;
  for (std::int32_t g = 0; g < ordered.n_groups(); ++g) {
    group = {group.end, ordered.group_end[static_cast<std::size_t>(g)]};
    Range bands;
    for (std::int32_t s = 0; s < ordered.n_segments; ++s) {
      bands = {bands.end, segment_end[static_cast<std::size_t>(s)]};
      const auto begin = static_cast<std::int64_t>(ordered.row.size());
      append(terms, rules, group, bands, ordered);
      ordered.segment.push_back({begin, static_cast<std::int64_t>(ordered.row.size()), g, s});
    }
  }
  return ordered;
}

void add_group_means(const std::vector<double>& of_groups,
                     const std::vector<std::int64_t>& group_end, double factor, double* sums) {
  const std::size_t n_groups = group_end.size();
  const std::int64_t n_left = group_end.back();
  for (std::size_t i = 0; i < of_groups.size() / n_groups; ++i, sums += n_left) {
    std::int64_t begin = 0;
    for (std::size_t g = 0; g < n_groups; ++g) {
      const double mean = of_groups[i * n_groups + g] / static_cast<double>(group_end[g] - begin);
      for (; begin < group_end[g]; ++begin) sums[begin] += factor * mean;
    }
  }
}

}  // namespace quasi::gw
