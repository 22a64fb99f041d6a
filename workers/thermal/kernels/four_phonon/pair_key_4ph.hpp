#pragma once

#include <cmath>
#include <cstdint>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal {

/// Kind of a table of last pairs. For one total momentum Q the table holds the last two phonons of
/// every possible process: q''' = Q + q'' for ++ (difference), q''' = Q − q'' for +- and -- (sum).
/// It serves all λ and λ' with q ± q' = Q.
enum class PairKind4ph { kDifference, kSum };

/// First and last key of an interval.
struct KeyInterval {
  std::uint32_t first, last;
};

/// Sorting keys of pairs, with which a query (λ, λ') reads little more than the pairs it accepts.
///
/// A pair has the energy Ω = ω''' ∓ ω''. A query at E = ω ± ω' accepts it if |E − Ω| is at most its
/// window, which varies by orders of magnitude among pairs. Pairs are therefore divided into
/// classes by a bound on their contribution to the width. Each bound is a quarter of the bound
/// before it, in σ². Within a class pairs are sorted by Ω. A query looks up one interval a class,
/// as wide as the bound of the class demands. A key holds [total momentum within the batch: 6
/// bits][class: 3][Ω in 2^-23 of the range: 23]. See docs/theory/thermal.md 11.3 for the equations.
struct PairKeys4ph {
  static constexpr int kClasses = 7;  ///< the eighth marks pairs that are none
  static constexpr int kEnergyBits = 23;
  static constexpr int kClassBits = 3;
  static constexpr int kBatch = 64;  ///< total momenta sorted together at most

  double bound[kClasses];  ///< of the class measure, falling
  double lowest[2];        ///< Ω at key 0, by PairKind4ph
  double steps_per_rad_ps;

  /// @param largest_omega, largest_spread_squared  over all modes taking part (max |p|², without
  /// sb)
  static PairKeys4ph make(const Rules4ph& rules, double largest_omega,
                          double largest_spread_squared) {
    PairKeys4ph keys;
    // |p''−p'''|² ≤ 2(|p''|²+|p'''|²) ≤ 4 max|p|²; the largest axis is not above the sum.
    double bound =
        (rules.broadening == Broadening::kSymmetric ? 2.0 : 4.0) * largest_spread_squared;
    for (double& b : keys.bound) {
      b = bound;
      bound *= 0.25;
    }
    const double top = largest_omega > 0.0 ? largest_omega : 1.0;
    keys.lowest[0] = -top;
    keys.lowest[1] = 0.0;
    keys.steps_per_rad_ps = ((1 << kEnergyBits) - 4) / (2.0 * top);
    return keys;
  }

  /// Keys for the modes of a problem.
  /// @param tables  on the host
  static PairKeys4ph of(const Tables4ph& tables) {
    double largest_omega = 0.0;
    double largest_spread = 0.0;
    for (std::int32_t m = 0; m < tables.n_modes(); ++m) {
      if (!(tables.omega[m] > 0.0)) continue;
      const double* p = tables.p(m);
      largest_omega = std::fmax(largest_omega, tables.omega[m]);
      largest_spread = std::fmax(largest_spread, p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    }
    return make(tables.rules, largest_omega, largest_spread);
  }

  QUASI_HD std::uint32_t energy_key(PairKind4ph kind, double energy) const {
    const double step = (energy - lowest[static_cast<int>(kind)]) * steps_per_rad_ps;
    if (!(step > 0.0)) return 0;
    const double top = (1 << kEnergyBits) - 1;
    return static_cast<std::uint32_t>(step < top ? step : top);
  }

  /// Contribution of a pair to the width, in the measure of `bound`.
  QUASI_HD static double measure(const Rules4ph& rules, const double* p2, const double* p3) {
    if (rules.broadening == Broadening::kSymmetric)
      return p2[0] * p2[0] + p2[1] * p2[1] + p2[2] * p2[2] + p3[0] * p3[0] + p3[1] * p3[1] +
             p3[2] * p3[2];
    return pair_width_squared(rules.broadening, p2, p3);
  }

  /// Widest window of any process with this query and a pair of this class; rad/ps.
  QUASI_HD double reach(const Rules4ph& rules, int pair_class, const double* p0,
                        const double* p1) const {
    double square = bound[pair_class];
    if (rules.broadening == Broadening::kSymmetric)
      // Σ over six pairs ≤ 4 Σ|p|², in width_squared_4ph divided by 36.
      square = (square + p0[0] * p0[0] + p0[1] * p0[1] + p0[2] * p0[2] + p1[0] * p1[0] +
                p1[1] * p1[1] + p1[2] * p1[2]) /
               9.0;
    double sigma = rules.scale_broad * std::sqrt(square);
    if (rules.sigma_at_floor_rad_ps == 0.0 && sigma < rules.sigma_floor_rad_ps)
      sigma = rules.sigma_floor_rad_ps;
    const double window = rules.cut * sigma * (1.0 + 1e-9);
    return window > rules.tie_tolerance_rad_ps ? window : rules.tie_tolerance_rad_ps;
  }

  /// Key of the pair index = (q''·nb + s'')·nb + s''' for total momentum Q.
  QUASI_HD std::uint32_t key(const Tables4ph& tables, PairKind4ph kind, std::int32_t total,
                             int place_in_batch, std::int64_t index) const {
    const int nb = tables.n_branches;
    const auto mode2 = static_cast<std::int32_t>(index / nb);
    const std::int32_t q2 = mode2 / nb;
    const std::int32_t q3 = tables.mesh.add(total, q2, kind == PairKind4ph::kSum ? -1 : 1);
    const std::int32_t mode3 = q3 * nb + static_cast<std::int32_t>(index % nb);
    const double w2 = tables.omega[mode2];
    const double w3 = tables.omega[mode3];
    const std::uint32_t place = static_cast<std::uint32_t>(place_in_batch)
                                << (kClassBits + kEnergyBits);
    if (!(w2 > 0.0) || !(w3 > 0.0) || (kind == PairKind4ph::kSum && mode2 > mode3))
      return place | static_cast<std::uint32_t>(kClasses) << kEnergyBits;
    const double size = measure(tables.rules, tables.p(mode2), tables.p(mode3));
    int pair_class = 0;
    while (pair_class + 1 < kClasses && size <= bound[pair_class + 1]) ++pair_class;
    return place | static_cast<std::uint32_t>(pair_class) << kEnergyBits |
           energy_key(kind, kind == PairKind4ph::kSum ? w2 + w3 : w3 - w2);
  }

  /// Keys that a query at `energy` can accept in a class, with one step on either side for
  /// rounding.
  /// @param p0, p1  spreads of λ and λ'
  QUASI_HD KeyInterval interval(const Rules4ph& rules, PairKind4ph kind, int pair_class,
                                double energy, const double* p0, const double* p1) const {
    const std::uint32_t base = static_cast<std::uint32_t>(pair_class) << kEnergyBits;
    const double window = reach(rules, pair_class, p0, p1);
    const std::uint32_t low = energy_key(kind, energy - window);
    const std::uint32_t high = energy_key(kind, energy + window);
    const std::uint32_t top = (1u << kEnergyBits) - 1;
    return {base + (low > 0 ? low - 1 : 0), base + (high < top ? high + 1 : top)};
  }
};

/// Position of the first key not below `value` in a sorted array.
QUASI_HD inline std::int64_t lower_bound_key(const std::uint32_t* key, std::int64_t n,
                                             std::uint32_t value) {
  std::int64_t first = 0;
  while (n > 0) {
    const std::int64_t half = n / 2;
    if (key[first + half] < value) {
      first += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return first;
}

}  // namespace quasi::thermal
