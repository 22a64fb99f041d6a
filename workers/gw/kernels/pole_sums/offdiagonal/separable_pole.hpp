#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "workers/backend/host_device.hpp"

namespace quasi::gw {

/// Sums of products that stand for a pole away from its crossing:
///
///   ω̃/(|x| + ω̃) ≈ Σ_k c_k(|x|) b_k(ω̃)
///
/// so that a plasmon-pole matrix, which depends on (n, E) only through |x| = |E − E_n|, becomes K
/// matrices A b_k/ω̃ that depend on neither. Two families:
///
///   exponential   b_k = ω̃ e^{−t_k ω̃} for finite ω̃, c_k = w_k e^{−t_k |x|}. The sum
///                 1/y ≈ w_0 + Σ w_k e^{−t_k y} is fitted on the range of y = |x| + ω̃. One
///                 more term with c = 1 holds static elements, and w_0 of the others.
///   rational      b_k = ω̃/(ξ_k + ω̃): the matrix at K reference values ξ_k of |x| is
///                 interpolated. This family needs fewer terms, and static elements need no
///                 further term.
/// See docs/theory/gw.md 7 for the equations.
enum class SeparableFamily { kExponential, kRational };

/// b_k/ω̃ of one element. Poles at or above `static_pole_ry` are static; `constant` is w_0 of an
/// exponential sum.
QUASI_HD inline double separable_term(SeparableFamily family, double node, double constant,
                                      double pole_ry, double static_pole_ry) {
  if (family == SeparableFamily::kRational) return 1.0 / (node + pole_ry);
  const bool is_static = pole_ry >= static_pole_ry;
  if (node > std::numeric_limits<double>::max()) return is_static ? 1.0 / pole_ry : constant;
  return is_static ? 0.0 : std::exp(-node * pole_ry);
}

struct SeparablePole {
  SeparableFamily family = SeparableFamily::kExponential;
  /// t_k (1/Ry) or ξ_k (Ry). In the exponential family the last node is infinite: static elements
  /// and the constant.
  std::vector<double> node;
  std::vector<double> weight;     ///< w_k, exponential family (1 for the last)
  double constant = 0.0;          ///< w_0, exponential family, 1/Ry
  std::vector<double> companion;  ///< 1/ω̃ at which the rational form interpolates, 1/Ry
  /// Largest |Σ_k c_k b_k − ω̃/(|x| + ω̃)| found on a grid finer than the fit's: rational. Relative
  /// error of 1/y: exponential.
  double error = 0.0;

  std::int64_t size() const { return static_cast<std::int64_t>(node.size()); }
  /// c_k(|x|) for all k.
  std::vector<double> coefficients(double x_magnitude_ry) const;
};

/// Range of |x| and of finite ω̃ to be covered, Ry.
struct PoleRange {
  double x_min_ry = 0.0, x_max_ry = 0.0;
  double pole_min_ry = 0.0, pole_max_ry = 0.0;
};

/// The smallest sum of a family that meets `tolerance` (see SeparablePole::error) over a range.
/// @throws NotConverged if 40 rational or 20 exponential terms do not; InvalidInput if the range is
/// empty or not positive.
SeparablePole fit_separable_pole(SeparableFamily family, const PoleRange& range, double tolerance);

/// 1/y ≈ w_0 + Σ_k w_k e^{−t_k y} on [1, ratio] with n_terms exponentials, close to the smallest
/// largest relative error. Term by term from one: guesses, least squares over the exponents; then
/// exchange steps to equal ripple.
struct ExponentialFit {
  std::vector<double> exponent, weight;
  double constant = 0.0;
  double error_relative = 0.0;
};
ExponentialFit fit_reciprocal(double ratio, int n_terms);

}  // namespace quasi::gw
