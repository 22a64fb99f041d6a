#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Rule by which a row (l, n) has its f, and a second factor e: SX − X, or f at the other energy.
/// Smooth rows cross no pole; f is smooth_pole_value(). Direct ones follow
/// physics/plasmon_pole.hpp near the poles.
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
/// A row (l, n) of the response of Σ (docs/theory/gw.md 9.3).
struct ResponseRow {
  double x_ry = 0.0;                     ///< x = E − E_n
  double other_x_ry = 0.0;               ///< of rules with two energies
  double low_tau = 0.0, high_tau = 0.0;  ///< poles near x, of kSplitSmooth
  RowRule rule = RowRule::kNone;
};
static_assert(sizeof(ResponseRow) == 40);

/// Makes the rows of all pairs, [n_left][n_right].
/// @throws InvalidInput for an occupation other than 0 and 1 or an x that is not finite
std::vector<ResponseRow> make_response_rows(const ResponseTerms& terms, const PoleRules& rules);
/// Returns the ends of the segments of bands. @throws InvalidInput unless they ascend to the last
/// band
std::vector<std::int64_t> segments_of(const ResponseTerms& terms);

}  // namespace quasi::gw
