#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal {

/// Rows to which the processes of a pair (q, q') are added.
///
/// In ++ and +- the phonons λ and λ' are interchangeable: |V|², σ and Δω do not change. The rows
/// have one point of every star, and the rules treat all phonons of a process alike. Then
///
///   Σ over processes of a star with λ' in star' = Σ over those of star' with λ' in star,
///
/// and the processes of two stars are enumerated once, from one of them. A pair (q, q') of weight w
/// (Tables4ph::partner_weight) has the weight w·|star|/|star'| in the row of q'.
/// See docs/theory/thermal.md 11.5 for the equations.
enum class Visit4ph {
  kNone,  ///< q' is no representative, or the pair is enumerated from q'
  kOwn,   ///< the processes are added to the row of λ
  kBoth,  ///< the processes are added to the rows of λ and λ'
};

/// Decides which rows get the processes of a point and its q'.
/// @param sign_of_second  +1 for ++ and +-, −1 for --
QUASI_HD inline Visit4ph visit_4ph(const Tables4ph& t, int sign_of_second, std::int32_t point,
                                   std::int32_t q1) {
  if (t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1] == 0)
    return Visit4ph::kNone;
  if (!t.exchange || sign_of_second < 0 || t.exchange->star[q1] == point) return Visit4ph::kOwn;
  return t.exchange->star[q1] > point ? Visit4ph::kBoth : Visit4ph::kNone;
}

/// Ratio of the weight of a process in the row of λ' to its weight in the row of λ.
QUASI_HD inline double exchange_ratio_4ph(const Tables4ph& t, std::int32_t point, std::int32_t q1) {
  return static_cast<double>(t.exchange->star_size[point]) /
         t.exchange->star_size[t.exchange->star[q1]];
}

/// Where all four phonons of a process share its visit, each process is enumerated once:
///
///   - λ + λ' + λ'' → λ''' with the phonon of highest precedence as λ'', and never as a
///     splitting;
///   - λ + λ' → λ'' + λ''' from the pair with the phonon of lowest precedence. If the lowest
///     phonons of both pairs are tied, the other two decide.
///
/// Tied choices share the weight. All modes of a star and degenerate set have one precedence, so
/// that symmetry changes no sum.
/// @return  factor of multiplicity_4ph; 0: the process is enumerated from another pair
QUASI_HD inline double quartet_share_4ph(const Tables4ph& t, const Quartet4ph& quartet) {
  if (!t.exchange) return 1.0;
  const std::int32_t* precedence = t.exchange->precedence;
  const std::int32_t a = precedence[quartet.mode0], b = precedence[quartet.mode1],
                     c = precedence[quartet.mode2], d = precedence[quartet.mode3];
  switch (quartet.channel) {
    case Channel4ph::kRecombination:
      // multiplicity_4ph() is ½ because both orders of λ' and λ'' are processes of a row.
      return a > c || b > c ? 0.0 : 2.0 / (1 + static_cast<int>(a == c) + static_cast<int>(b == c));
    case Channel4ph::kRedistribution: {
      const std::int32_t low = a < b ? a : b, other_low = c < d ? c : d;
      if (low != other_low) return low < other_low ? 1.0 : 0.0;
      const std::int32_t high = a < b ? b : a, other_high = c < d ? d : c;
      return high < other_high ? 1.0 : high == other_high ? 0.5 : 0.0;
    }
    default:
      return 0.0;
  }
}

/// Calls visit(row, channel, ratio, p1, p2, p3) for every row that gets a visited process. The row
/// sees the process in `channel` with the modes p1, p2 and p3 as its λ', λ'' and λ'''. The ratio
/// is the weight of the process in this row over its weight in the row of λ.
///
/// A visit of (q, q') stands for w·|star(q)| pairs of points. If q' is in the star of q, both
/// orders are visited, and each stands for half as many. A row has one point of its star, which
/// takes part in 1/|star| of the processes.
/// See docs/theory/thermal.md 11.5 for the equations.
/// @param row   of λ
/// @param both  Visit4ph::kBoth
template <typename Visit>
QUASI_HD inline void for_each_row_4ph(const Tables4ph& t, const Quartet4ph& quartet,
                                      std::int64_t row, bool both, const Visit& visit) {
  const auto [channel, mode0, mode1, mode2, mode3] = quartet;
  visit(row, channel, 1.0, mode1, mode2, mode3);
  if (!t.exchange) return;
  const int nb = t.n_branches;
  const auto row_of = [&](std::int32_t mode) {
    return static_cast<std::int64_t>(t.exchange->star[mode / nb]) * nb + mode % nb;
  };
  const double pairs = (both ? 1.0 : 0.5) * t.exchange->star_size[row / nb];
  const auto ratio_of = [&](std::int32_t mode) {
    return pairs / t.exchange->star_size[t.exchange->star[mode / nb]];
  };
  if (both) visit(row_of(mode1), channel, ratio_of(mode1), mode0, mode2, mode3);
  if (channel == Channel4ph::kRecombination) {
    visit(row_of(mode2), channel, ratio_of(mode2), mode0, mode1, mode3);
    visit(row_of(mode3), Channel4ph::kSplitting, ratio_of(mode3), mode0, mode1, mode2);
  } else {
    visit(row_of(mode2), channel, ratio_of(mode2), mode3, mode0, mode1);
    visit(row_of(mode3), channel, ratio_of(mode3), mode2, mode0, mode1);
  }
}

inline constexpr int kExchanged = 2;  ///< number of channels with interchangeable λ, λ': ++ and +-

/// Finds the point whose rows get the processes of a point and a total momentum besides its own
/// rows. index = place·n_points + point.
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

/// Adds the sums that one total momentum gave for λ' to the rows of λ', one value a call.
/// index = ((place·n_rows + row)·kExchanged + channel)·n_values + value.
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
