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
};
static_assert(sizeof(ResponseRow) == 40);

/// Returns the rows of all pairs of outer states and bands, [n_left][n_right].
/// @throws InvalidInput for an occupation other than 0 and 1 or an x that is not finite
std::vector<ResponseRow> make_response_rows(const ResponseTerms& terms, const PoleRules& rules);
/// Returns the ends of the segments of bands, ascending. There is one segment if `terms` gives
/// none.
/// @throws InvalidInput unless the ends ascend and the last one is the number of bands
std::vector<std::int64_t> segments_of(const ResponseTerms& terms);

}  // namespace quasi::gw
