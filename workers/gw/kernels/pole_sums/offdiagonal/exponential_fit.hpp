#pragma once

#include "workers/gw/kernels/pole_sums/offdiagonal/least_squares.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"

/// Exponential sums for 1/y on [1, ratio] with a small largest relative error. A fit begins with
/// one term and gains one at a time: first guesses, then least squares over the exponents, then
/// exchange steps to equal ripple. See docs/theory/gw.md 7 for the equations.
namespace quasi::gw::fit {

/// 1/y ≈ e^η + Σ e^w e^{−y e^t}. The parameters are logarithms, so that all terms stay positive.
struct LogFit {
  Vector exponent, weight;
  Real constant = 0;
  std::size_t size() const { return exponent.size(); }

  /// y (e^η + Σ …) − 1 at each point. Terms are positive and at most 1: double loses nothing.
  Numbers<double> errors(const Vector& points) const;
  Real largest_error(const Vector& points) const;
  /// y (e^η + Σ …) − 1 at one point in the precision of Real.
  Real error(Real y) const;
  /// The fit after a step of all parameters, scaled by `by`.
  LogFit moved(const Vector& step, Real by) const;
};

/// Points from 1 to ratio, evenly in the logarithm but closer at both ends.
Vector graded_points(Real ratio, int n);
/// Adds one term to `fit` by least squares from several guesses. The result is never worse than
/// `fit`.
LogFit with_one_more(const LogFit& fit, Real ratio);
/// Improves `fit` by exchange steps to equal ripple.
LogFit finished(const LogFit& fit, Real ratio);
ExponentialFit as_numbers(const LogFit& fit, Real ratio);

/// Least squares give the smallest sum of squares. The smallest largest error is up to this factor
/// below theirs.
inline constexpr double kRippleGain = 6.0;

}  // namespace quasi::gw::fit
