#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Lists the rules by which a row (l, n) gets its pole factor f and a second factor e. The second
/// factor is SX − X for occupied bands, and f at another energy for empty bands. Smooth rows
/// cross no pole, so that f is smooth_pole_value(). Direct rows follow the rules near poles of
/// physics/plasmon_pole.hpp.
enum class RowRule : std::int32_t {
  kNone,            ///< f = 0: a vector that only the closed sum counts
  kSmoothOccupied,  ///< e = 0
  kSmoothEmpty,     ///< e = 0
  kDirectOccupied,  ///< e = 0
  kDirectEmpty,     ///< e = 0
  kSplitSmooth,     ///< an occupied band with e of SX − X, by split_pole_values()
  kSplitDirect,     ///< an occupied band with e of SX − X
  kTwoSmooth,       ///< an empty band with e at its other energy
  kTwoDirect        ///< an empty band with e at its other energy
};
/// Describes a row of the response of Σ, which belongs to an outer state l and an inner band n
/// (docs/theory/gw.md 9.3).
struct ResponseRow {
  double x_ry = 0.0;        ///< x = E − E_n
  double other_x_ry = 0.0;  ///< x at the other energy, for kTwoSmooth and kTwoDirect
  /// The rules drop CH for poles near x, which have τ between these bounds, 1/Ry. Only
  /// kSplitSmooth uses them.
  double low_tau = 0.0, high_tau = 0.0;
  RowRule rule = RowRule::kNone;
  /// Number of rows of the same run from this one on. All of them have the same pole factors, so
  /// that their products M M* are added before they are multiplied with f.
  std::int32_t run = 1;

  /// Returns true if both rows have the same pole factors. Energies within kEqualEnergy_ry count
  /// as equal.
  bool has_factors_of(const ResponseRow& other) const;
};
static_assert(sizeof(ResponseRow) == 40);

/// Energies that differ by less than this are equal in a run of rows. Degenerate states of an
/// eigensolver differ by rounding and residuals. Σ changes by less than 1e-9 Ry.
inline constexpr double kEqualEnergy_ry = 1e-9;

/// Rows [begin, end) of one group of outer states and one segment of bands.
struct RowSegment {
  std::int64_t begin = 0, end = 0;
  std::int32_t group = 0, segment = 0;
};
/// Lists the rows of a response in the order in which they are summed: by group of outer states,
/// then by segment of bands, then by run.
struct OrderedRows {
  std::vector<ResponseRow> row;
  std::vector<std::int64_t> pair;       ///< l·n_right + n of each row
  std::vector<RowSegment> segment;      ///< of the rows, in their order
  std::vector<std::int64_t> group_end;  ///< ends of the groups of outer states, ascending
  std::int64_t n_segments = 1;          ///< segments of bands
  std::int64_t n_groups() const { return static_cast<std::int64_t>(group_end.size()); }
};

/// Returns the rows of all pairs of outer states and bands.
/// @throws InvalidInput for an occupation other than 0 and 1 or an x that is not finite, and unless
/// the ends of segments and of groups ascend to the number of bands and of outer states
OrderedRows make_response_rows(const ResponseTerms& terms, const PoleRules& rules);

/// Adds sums of groups of outer states, [n_sums][n_groups], times a factor to those of the states,
/// [n_sums][n_left]. Each state gets the mean of its group.
void add_group_means(const std::vector<double>& of_groups,
                     const std::vector<std::int64_t>& group_end, double factor, double* sums);

}  // namespace quasi::gw
