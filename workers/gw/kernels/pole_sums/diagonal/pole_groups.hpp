#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Largest number of energies in one group of the diagonal plasmon-pole sum. Every device cuts the
/// sum into the same groups.
///
/// Write B = A/ω̃ = ½ I v̄ and τ = 1/ω̃ (0 for a static element). Away from poles an element's
/// factor for x = E − E_n is
///
///   occupied, x ≥ 0:   A/(x + ω̃) = + B / (1 + |x| τ)
///   empty,    x ≤ −γ:  A/(x − ω̃) = − B / (1 + |x| τ)
///
/// so a pair (n, E) on that side needs no rule and no branch. K energies of one n share one
/// reciprocal: with D(τ) = Π_k (1 + |x_k| τ) = 1 + d_1 τ + … + d_K τ^K,
///
///   1/(1 + |x_j| τ) = Σ_m c_jm τ^m / D(τ),   c_jm = m-th elementary symmetric polynomial of the
///                                            other |x_k|.
///
/// The kernel sums t_m = Σ_GG' Re[M B M*] τ^m / D, m < K, once per n; the c_jm, which do not depend
/// on (G, G'), turn the K sums into the K energies. Every term is positive where B is positive, so
/// that no new cancellation occurs.
///
/// Where SX − X of such an occupied band is told apart, both follow from one reciprocal r:
///
///   total = (1 − xτ) r B,   SX − X = 2 r B,   r = 1/((1 + xτ)(1 − xτ)),
///
/// and total = SX − X = B/(1 + xτ) for the poles near x, where CH is dropped. All other pairs
/// are `direct`: they follow the functions of physics/plasmon_pole.hpp with the rules near poles.
/// See docs/theory/gw.md 6.2 for the equations.
inline constexpr int kMaxEnergiesPerGroup = 4;

/// Numbers of a smooth row: d_1..d_K, then c_jm (j slowest) times sign and weight.
constexpr int smooth_row_length(int n_energies) { return n_energies * (n_energies + 1); }
/// Numbers of a split row: x_1..x_K, the least and then the largest τ of the poles near each x_k,
/// and the weight.
constexpr int split_row_length(int n_energies) { return 3 * n_energies + 1; }
/// Numbers of a direct row: x_1..x_K, then the weights of total(occupied), total(empty) and SX.
constexpr int direct_row_length(int n_energies) { return n_energies + 3; }

/// The rows (l, n) of one group of at most kMaxEnergiesPerGroup neighbouring energies.
struct PoleGroup {
  std::int64_t first_energy = 0;
  int n_energies = 0;
  /// True for a group of two whose second number is the slope at the first energy.
  bool second_is_slope = false;
  std::vector<std::int32_t> smooth_begin;  ///< [n_left + 1] offsets into smooth_band
  std::vector<std::int32_t> smooth_band;   ///< n of each smooth row
  std::vector<double> smooth_row;          ///< [n_rows][smooth_row_length]
  std::vector<std::int32_t> split_begin;   ///< [n_left + 1] offsets into split_band
  std::vector<std::int32_t> split_band;    ///< n of each split row
  std::vector<double> split_row;           ///< [n_rows][split_row_length]
  std::vector<std::int32_t> direct_begin;  ///< [n_left + 1] offsets into direct_band
  std::vector<std::int32_t> direct_band;   ///< n of each direct row
  std::vector<double> direct_row;          ///< [n_rows][direct_row_length]
};

enum class ScreenedExchange { kWanted, kNotWanted };

/// Sorts every (l, n, group) into smooth, split and direct rows.
///
/// @param x_ry        E − E_n, [n_left][n_right][n_energies], finite
/// @param occupation  [n_right], within [0, 1]; bands with 0 < f < 1 are direct
/// @param weight      factor of every term
/// @throws InvalidInput for an occupation outside [0, 1] or an x that is not finite.
std::vector<PoleGroup> make_pole_groups(View<const double, 3> x_ry,
                                        View<const double, 1> occupation, double weight,
                                        const PoleRules& rules, ScreenedExchange screened_exchange);

/// One group of two for Σ and dΣ/dE at one energy of every (l, n): both x_k of a row are the same
/// x, so D = (1 + |x|τ)², the value is (t_0 + |x| t_1) and the slope −t_1 on either side: nothing
/// is added to what two energies cost. Near poles the slope of a factor f = 1/(x ± ω̃) is −f².
///
/// @param x_ry  E − E_n, [n_left][n_right]
PoleGroup make_slope_group(View<const double, 2> x_ry, View<const double, 1> occupation,
                           double weight, const PoleRules& rules,
                           ScreenedExchange screened_exchange);

/// True if a pair may be evaluated without the rules of physics/plasmon_pole.hpp.
inline bool crosses_no_pole(double x_ry, double occupation, const PoleRules& rules) {
  return (occupation == 1.0 && x_ry >= 0.0) || (occupation == 0.0 && x_ry <= -rules.half_width_ry);
}

}  // namespace quasi::gw
