#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal {

/// λ and λ' of ++ and +- may change places: the same |V|², σ and Δω belong to a process of either.
/// With rows for one point of every star, and with rules that treat all phonons of a process alike,
/// each two stars need to be visited from one side only:
///
///   Σ over processes of a star with λ' in star' = Σ over those of star' with λ' in star,
///
/// so that a visit from (q, q') with weight w (Tables4ph::partner_weight) adds to the row of q'
/// with weight w·|star|/|star'|, which is the weight it would have had from there.
enum class Visit4ph {
  kNone,  ///< q' is no representative, or its star visits q
  kOwn,   ///< adds to the row of λ
  kBoth,  ///< and to that of λ'
};

QUASI_HD inline Visit4ph visit_4ph(const Tables4ph& t, int sign_of_second, std::int32_t point,
                                   std::int32_t q1) {
  if (t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1] == 0)
    return Visit4ph::kNone;
  if (!t.exchange || sign_of_second < 0 || t.exchange->star[q1] == point) return Visit4ph::kOwn;
  return t.exchange->star[q1] > point ? Visit4ph::kBoth : Visit4ph::kNone;
}

/// What a visit from `point` weighs in the row of λ', over what it weighs in its own.
QUASI_HD inline double exchange_ratio_4ph(const Tables4ph& t, std::int32_t point, std::int32_t q1) {
  return static_cast<double>(t.exchange->star_size[point]) /
         t.exchange->star_size[t.exchange->star[q1]];
}

/// λ', λ'' and λ''' of -- may change places too, and none of them is a row: each process is visited
/// with that one as λ' which no other precedes, for all three of them, and shared where several are
/// equal. Slower modes come first, because few have them as λ' and many processes each; all of a
/// star and degenerate set are equal, so that symmetry changes no sum.
/// @return  factor of multiplicity_4ph; 0: visited elsewhere
QUASI_HD inline double splitting_share_4ph(const Tables4ph& t, std::int32_t mode1,
                                           std::int32_t mode2, std::int32_t mode3) {
  if (!t.exchange) return 1.0;
  const std::int32_t* precedence = t.exchange->precedence;
  const std::int32_t first = precedence[mode1], second = precedence[mode2],
                     third = precedence[mode3];
  if (second < first || third < first) return 0.0;
  return 3.0 / (1 + static_cast<int>(second == first) + static_cast<int>(third == first));
}

/// False where λ' is too fast to come before any pair of this total energy: the slower of two has
/// at most half of it.
/// @param energy_rad_ps  largest ω'' + ω''' in reach
QUASI_HD inline bool may_precede_4ph(const Tables4ph& t, double omega1_rad_ps,
                                     double energy_rad_ps) {
  return !t.exchange ||
         2.0 * (omega1_rad_ps - t.exchange->precedence_slack_rad_ps) <= energy_rad_ps;
}

inline constexpr int kExchanged = 2;  ///< channels that exchange: ++ and +-

/// Whose rows each point's visits of a place's total momentum add to; index = place·n_points +
/// point.
struct ExchangePartners4ph {
  Tables4ph tables;
  std::int32_t first_total;  ///< place in the order
  std::int32_t* partner;  ///< [places][n_points] place of the star of q' among the points; −1: none

  QUASI_HD void operator()(std::int64_t index) const {
    const Tables4ph& t = tables;
    const auto point = static_cast<std::int32_t>(index % t.n_points);
    const std::int32_t total =
        t.total_at(first_total + static_cast<std::int32_t>(index / t.n_points));
    const std::int32_t q1 = t.mesh.add(total, t.point[point], -1);
    partner[index] = visit_4ph(t, 1, point, q1) == Visit4ph::kBoth ? t.exchange->star[q1] : -1;
  }
};

/// What the visits of one total momentum found for λ', to the rows of λ': adds to the sums of a
/// place, one value a call. index = ((place·n_rows + row)·kExchanged + channel)·n_values + value.
struct AddExchanged4ph {
  Tables4ph tables;
  std::int32_t first_total;  ///< place in the order
  int n_values;
  const std::int32_t* partner;  ///< ExchangePartners4ph::partner
  const double* exchanged;  ///< [places][n_rows of λ][n_branches of λ'][kExchanged][n_values]; read
                            ///< where visited
  double* sum;  ///< [places][n_rows][kChannels4ph][n_values]

  QUASI_HD void operator()(std::int64_t index) const {
    const Tables4ph& t = tables;
    const int nb = t.n_branches;
    const std::int64_t value = index % n_values;
    const std::int64_t channel = index / n_values % kExchanged;
    const std::int64_t row = index / n_values / kExchanged % t.n_rows();
    const std::int64_t place = index / n_values / kExchanged / t.n_rows();
    const std::int64_t branch = row % nb;
    const auto own = static_cast<std::int32_t>(row / nb);
    const std::int32_t q_total = t.total_at(first_total + static_cast<std::int32_t>(place));
    double total = sum[((place * t.n_rows() + row) * kChannels4ph + channel) * n_values + value];
    for (std::int32_t point = 0; point < own; ++point) {
      if (partner[place * t.n_points + point] != own) continue;
      const std::int32_t q1 = t.mesh.add(q_total, t.point[point], -1);
      if (!(t.omega[static_cast<std::int64_t>(q1) * nb + branch] > 0.0)) continue;
      for (int s = 0; s < nb; ++s) {
        if (!(t.omega[static_cast<std::int64_t>(t.point[point]) * nb + s] > 0.0)) continue;
        const std::int64_t from =
            (place * t.n_rows() + static_cast<std::int64_t>(point) * nb + s) * nb + branch;
        total += exchanged[(from * kExchanged + channel) * n_values + value];
      }
    }
    sum[((place * t.n_rows() + row) * kChannels4ph + channel) * n_values + value] = total;
  }
};

}  // namespace quasi::thermal
