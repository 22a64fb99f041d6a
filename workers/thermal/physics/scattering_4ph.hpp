#pragma once

#include <cmath>
#include <cstdint>

#include "workers/backend/host_device.hpp"
#include "workers/thermal/physics/broadening.hpp"

namespace quasi::thermal {

/// The three channels of four-phonon scattering of a phonon λ (docs/theory/thermal.md 7.1)
/// [feng2016].
enum class Channel4ph : int {
  kRecombination = 0,   ///< "++"  λ + λ' + λ'' → λ'''
  kRedistribution = 1,  ///< "+-"  λ + λ' → λ'' + λ'''
  kSplitting = 2,       ///< "--"  λ → λ' + λ'' + λ'''
};
inline constexpr int kChannels4ph = 3;

/// Returns the sign of λ' in the energy balance: +1 if it is destroyed with λ, −1 if it is created.
QUASI_HD inline int sign_second(Channel4ph channel) {
  return channel == Channel4ph::kSplitting ? -1 : 1;
}
/// Returns the sign of λ'' in the energy balance. λ''' is always created.
QUASI_HD inline int sign_third(Channel4ph channel) {
  return channel == Channel4ph::kRecombination ? 1 : -1;
}

/// Returns Δω = ω ± ω' ± ω'' − ω''', in rad/ps.
QUASI_HD inline double mismatch_4ph(Channel4ph channel, double w0, double w1, double w2,
                                    double w3) {
  return w0 + sign_second(channel) * w1 + sign_third(channel) * w2 - w3;
}

/// Returns the Bose factor B of the relaxation of n(λ), reduced so that no two large numbers are
/// subtracted (docs/theory/thermal.md 5). An example is n'n''(1+n''') − (1+n')(1+n'')n''' = n'n'' −
/// n'''(1+n'+n'').
QUASI_HD inline double bose_factor_4ph(Channel4ph channel, double n1, double n2, double n3) {
  switch (channel) {
    case Channel4ph::kRecombination:
      return n1 * n2 - n3 * (1.0 + n1 + n2);
    case Channel4ph::kRedistribution:
      return n1 * (1.0 + n2 + n3) - n2 * n3;
    default:
      return (1.0 + n1) * (1.0 + n2 + n3) + n2 * n3;
  }
}

/// Returns the Bose factor that makes the collision operator symmetric off the energy shell too
/// (docs/theory/thermal.md 5): s's''s'''/s with s = √(n(n+1)) in every channel. On the shell it
/// equals bose_factor_4ph().
QUASI_HD inline double symmetric_bose_factor_4ph(double n0, double n1, double n2, double n3) {
  return std::sqrt(n1 * (n1 + 1.0) * n2 * (n2 + 1.0) * n3 * (n3 + 1.0) / (n0 * (n0 + 1.0)));
}

/// Σ|p|² and Σp of two phonons, which determine their share of the symmetric width.
struct SpreadSums {
  double square;
  Spread sum;
};
/// Returns the sums of two spread vectors.
QUASI_HD inline SpreadSums spread_sums(const double* a, const double* b) {
  return {a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + b[0] * b[0] + b[1] * b[1] + b[2] * b[2],
          {a[0] + b[0], a[1] + b[1], a[2] + b[2]}};
}

/// Returns (σ/sb)² of kSymmetric (docs/theory/thermal.md 7.4), the mean of pair_width_squared()
/// over all six pairs of the process: Σ_pairs |p_i − p_j|² = 4 Σ|p|² − |Σp|². It takes the phonons
/// in pairs, because loops know the last two long before the first two.
QUASI_HD inline double symmetric_width_squared_4ph(const SpreadSums& first,
                                                   const SpreadSums& last) {
  const double x = first.sum.x + last.sum.x;
  const double y = first.sum.y + last.sum.y;
  const double z = first.sum.z + last.sum.z;
  const double width =
      (4.0 * (first.square + last.square) - (x * x + y * y + z * z)) * (1.0 / 36.0);
  return width > 0.0 ? width : 0.0;
}

/// Returns (σ/sb)² of a four-phonon process from the spread vectors of its phonons:
/// symmetric_width_squared_4ph() for kSymmetric, else the width of the pair (λ'', λ''').
QUASI_HD inline double width_squared_4ph(Broadening kind, const double* p0, const double* p1,
                                         const double* p2, const double* p3) {
  return kind == Broadening::kSymmetric
             ? symmetric_width_squared_4ph(spread_sums(p0, p1), spread_sums(p2, p3))
             : pair_width_squared(kind, p2, p3);
}

/// Weights and thresholds that affect every result (docs/theory/thermal.md 7.2–7.5).
struct Rules4ph {
  Broadening broadening = Broadening::kSymmetric;
  double scale_broad = 1.0;            ///< sb
  double cut = 1.0;                    ///< window |Δω| ≤ cut·σ
  double tie_tolerance_rad_ps = 1e-9;  ///< least width of the window
  double window_norm = 1.0;            ///< divisor of δ: erf(cut), or 1
  double sigma_least_rad_ps = 0.0;     ///< a tuple with smaller σ is not a process
  double sigma_floor_rad_ps = 0.0;     ///< smaller σ are raised to this
  /// Value that replaces a σ not above the floor: 1/√π as in FourPhonon (δ then peaks at 1 ps), or
  /// 0 for the floor itself.
  double sigma_at_floor_rad_ps = 0.0;
  double omega_floor_rad_ps = 0.0;  ///< W is 0 unless ω', ω'' and ω''' are above
  /// True: every ordered tuple counts, with weights ½ (++), ½ and 1 (+−), 1/6 and 1/3 (−−). False:
  /// each unordered tuple counts once with weight 1, and σ and order follow the numbers of the
  /// points, as in FourPhonon.
  bool exact_weights = true;
};

/// An accepted tuple: its weight, Δω and σ. They depend on neither temperature nor matrix element.
struct Process4ph {
  double multiplicity = 0.0;     ///< weight of the tuple in the sum; 0: not a process
  double mismatch_rad_ps = 0.0;  ///< Δω
  double sigma_rad_ps = 0.0;
};

/// True for a process λ + λ' → λ'' + λ''' that exchanges nothing: one of the last phonons belongs
/// to the degenerate set of one of the first. The eigensolver is free to mix the branches of a set.
/// To leave processes out branch by branch would make rates depend on that choice and differ over a
/// star.
///
/// @param set0…set3  numbers of the degenerate sets; where every branch is its own set, of the
/// modes
QUASI_HD inline bool exchanges_nothing(std::int32_t set0, std::int32_t set1, std::int32_t set2,
                                       std::int32_t set3) {
  return set2 == set0 || set3 == set0 || set2 == set1 || set3 == set1;
}

/// Modes λ, λ', λ'' and λ''' of a tuple in one channel, each as point·nb + branch.
struct Quartet4ph {
  Channel4ph channel;
  std::int32_t mode0, mode1, mode2, mode3;
};

/// Returns the weight of a tuple that conserves momentum, from the numbers of its modes (point·nb +
/// branch) alone (docs/theory/thermal.md 7.2). It is 0 if the unordered tuple is counted elsewhere.
///
/// The pair (λ'', λ''') of +− and −− is enumerated once, with mode'' ≤ mode''' (by point, then
/// branch).
QUASI_HD inline double multiplicity_4ph(Channel4ph channel, bool exact_weights, std::int32_t mode1,
                                        std::int32_t mode2, std::int32_t mode3) {
  switch (channel) {
    case Channel4ph::kRecombination:
      if (exact_weights) return 0.5;
      return mode1 <= mode2 ? 1.0 : 0.0;
    case Channel4ph::kRedistribution:
      return exact_weights && mode2 == mode3 ? 0.5 : 1.0;
    default:
      if (exact_weights) return mode2 == mode3 ? 1.0 / 6.0 : 1.0 / 3.0;
      return mode1 <= mode2 ? 1.0 : 0.0;
  }
}

/// Returns false if multiplicity_4ph() is 0 for every last phonon.
QUASI_HD inline bool multiplicity_may_be(Channel4ph channel, bool exact_weights, std::int32_t mode1,
                                         std::int32_t mode2) {
  return exact_weights || channel == Channel4ph::kRedistribution || mode1 <= mode2;
}

/// Tests the energy window (docs/theory/thermal.md 7.3, 7.5). @param width_squared  (σ/sb)² of
/// width_squared_4ph()
QUASI_HD inline Process4ph test_window_4ph(const Rules4ph& rules, double multiplicity,
                                           double mismatch_rad_ps, double width_squared) {
  Process4ph process;
  if (multiplicity == 0.0) return process;
  double sigma = rules.scale_broad * std::sqrt(width_squared);
  if (sigma < rules.sigma_least_rad_ps) return process;
  if (rules.sigma_at_floor_rad_ps == 0.0 && sigma < rules.sigma_floor_rad_ps)
    sigma = rules.sigma_floor_rad_ps;
  const double window = rules.cut * sigma;
  if (!(std::fabs(mismatch_rad_ps) <=
        (window > rules.tie_tolerance_rad_ps ? window : rules.tie_tolerance_rad_ps)))
    return process;
  if (rules.sigma_at_floor_rad_ps != 0.0 && sigma <= rules.sigma_floor_rad_ps)
    sigma = rules.sigma_at_floor_rad_ps;
  process.multiplicity = multiplicity;
  process.mismatch_rad_ps = mismatch_rad_ps;
  process.sigma_rad_ps = sigma;
  return process;
}

/// A cheap test that accepts everything that test_window_4ph() accepts and almost nothing else. It
/// compares squares, and its windows are wider by a billionth.
struct WindowSieve4ph {
  double per_width;  ///< (cut·sb)²
  double further;
  double least;  ///< square of the narrowest window

  /// Makes the sieve of a set of rules.
  QUASI_HD static WindowSieve4ph of(const Rules4ph& rules) {
    const double of_floor =
        rules.sigma_at_floor_rad_ps == 0.0 ? rules.cut * rules.sigma_floor_rad_ps : 0.0;
    const double narrowest =
        (1.0 + 1e-9) *
        (of_floor > rules.tie_tolerance_rad_ps ? of_floor : rules.tie_tolerance_rad_ps);
    const double least = narrowest > 1e-9 ? narrowest : 1e-9;
    const double reach = rules.cut * rules.scale_broad;
    return {(1.0 + 1e-9) * reach * reach, 1e-18 * reach * reach, least * least};
  }
  /// @param width_squared  (σ/sb)² of width_squared_4ph
  QUASI_HD bool passes(double mismatch_rad_ps, double width_squared) const {
    const double window = per_width * width_squared + further;
    return mismatch_rad_ps * mismatch_rad_ps <= (window > least ? window : least);
  }
};

/// Frequency ω and spread vector p of each of the four phonons of a tuple.
struct FourPhonons {
  double omega_rad_ps[4];
  const double* spread_rad_ps[4];  ///< [3] each
};

/// Applies test_window_4ph to four phonons. The order of operations is that of FourPhonon, because
/// on coarse meshes a window can compare two rounding errors (docs/theory/thermal.md 7.5).
QUASI_HD inline Process4ph find_process_4ph(Channel4ph channel, const Rules4ph& rules,
                                            double multiplicity, const FourPhonons& phonons) {
  const auto& omega = phonons.omega_rad_ps;
  const auto& p = phonons.spread_rad_ps;
  return test_window_4ph(rules, multiplicity,
                         mismatch_4ph(channel, omega[0], omega[1], omega[2], omega[3]),
                         width_squared_4ph(rules.broadening, p[0], p[1], p[2], p[3]));
}

/// Returns δ_σ(Δω) of an accepted process in ps, divided by the weight inside the window if the
/// rules say so (docs/theory/thermal.md 4).
QUASI_HD inline double delta_4ph_ps(const Rules4ph& rules, const Process4ph& process) {
  return gaussian_delta_ps(process.mismatch_rad_ps, process.sigma_rad_ps) *
         (1.0 / rules.window_norm);
}

/// Returns 1/(ω ω' ω'' ω''') in ps⁴, or 0 if a partner is too slow for the rules.
QUASI_HD inline double inverse_omega_product_4ph(const Rules4ph& rules, const double omega[4]) {
  if (omega[1] <= rules.omega_floor_rad_ps || omega[2] <= rules.omega_floor_rad_ps ||
      omega[3] <= rules.omega_floor_rad_ps)
    return 0.0;
  return 1.0 / (omega[0] * omega[1] * omega[2] * omega[3]);
}

}  // namespace quasi::thermal
