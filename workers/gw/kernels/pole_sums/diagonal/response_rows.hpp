#pragma once

#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Numbers of a row (l, n) of the response of Σ (docs/theory/gw.md 9.3): x = E − E_n, then its
/// RowRule.
inline constexpr int kResponseRowLength = 2;

/// Rule of a row. The two smooth rules are the side of smooth_pole_value(). The direct ones follow
/// physics/plasmon_pole.hpp near the poles.
namespace row_rule {
inline constexpr double kSmoothOccupied = 1.0, kSmoothEmpty = -1.0, kDirectOccupied = 2.0,
                        kDirectEmpty = -2.0;
inline constexpr double kNone = 0.0;  ///< f = 0: a vector that only the closed sum counts
}  // namespace row_rule

/// Makes the rows of all pairs, [n_left][n_right][kResponseRowLength].
/// @throws InvalidInput for an occupation other than 0 and 1 or an x that is not finite
std::vector<double> make_response_rows(const ResponseTerms& terms, const PoleRules& rules);

}  // namespace quasi::gw
