#include "workers/gw/kernels/pole_sums/offdiagonal/exponential_fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quasi::gw::fit {

Numbers<double> LogFit::errors(const Vector& points) const {
  Numbers<double> found(points.size()), t(size()), w(size());
  for (std::size_t k = 0; k < size(); ++k) {
    t[k] = static_cast<double>(std::exp(exponent[k]));
    w[k] = static_cast<double>(std::exp(weight[k]));
  }
  const auto c = static_cast<double>(std::exp(constant));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto y = static_cast<double>(points[i]);
    double sum = c;
    for (std::size_t k = 0; k < t.size(); ++k)
      if (t[k] * y < 60) sum += w[k] * std::exp(-t[k] * y);
    found[i] = y * sum - 1;
  }
  return found;
}

Real LogFit::largest_error(const Vector& points) const {
  double worst = 0;
  for (double error : errors(points)) worst = std::max(worst, std::abs(error));
  return worst;
}

Real LogFit::error(Real y) const {
  Real sum = std::exp(constant);
  for (std::size_t k = 0; k < size(); ++k) sum += std::exp(weight[k] - y * std::exp(exponent[k]));
  return y * sum - 1;
}

LogFit LogFit::moved(const Vector& step, Real by) const {
  LogFit fit = *this;
  for (std::size_t k = 0; k < size(); ++k) {
    fit.exponent[k] += by * step[k];
    fit.weight[k] += by * step[size() + k];
  }
  fit.constant += by * step[2 * size()];
  return fit;
}

Vector graded_points(Real ratio, int n) {
  Vector points(static_cast<std::size_t>(n));
  const Real pi = std::acos(Real{-1});
  for (int i = 0; i < n; ++i) {
    const Real even = Real(i) / (n - 1);
    const Real cosine = (1 - std::cos(pi * even)) / 2;
    points[static_cast<std::size_t>(i)] = std::exp(std::log(ratio) * (0.5L * even + 0.5L * cosine));
  }
  return points;
}

namespace {

/// y (c + Σ w e^{−t y}) ≈ 1 at points, exponents given: columns y and Φ_k = y e^{−t_k y} reduced to
/// Q R, so that the best weights and the derivatives of the remaining residual after the exponents
/// follow (variable projection, Kaufman's form).
template <typename T>
struct Projection {
  Numbers<T> weight;      ///< best for these exponents, the constant last
  Columns<T> derivative;  ///< of the residual, in the basis orthogonal to Φ, after ln t_k; the
                          ///< residual itself last
  T square = 0;
};
template <typename T>
Projection<T> project(const Numbers<T>& exponent, const Numbers<T>& points) {
  const std::size_t n = exponent.size(), m = points.size(), linear = n + 1;
  // The columns are Φ and y, then dΦ_k/d ln t_k without w_k, then the right side. One set of
  // reflections serves all of them.
  Columns<T> a(m, linear + n + 1);
  for (std::size_t k = 0; k < n; ++k) {
    const T t = std::exp(exponent[k]);
    for (std::size_t i = 0; i < m; ++i) {
      a(i, k) = points[i] * std::exp(-t * points[i]);
      a(i, linear + k) = -t * points[i] * a(i, k);
    }
  }
  for (std::size_t i = 0; i < m; ++i) {
    a(i, n) = points[i];
    a(i, linear + n) = 1;
  }
  triangularise(a, linear);
  Projection<T> p{.weight = back_substituted(a, linear, linear + n),
                  .derivative = Columns<T>(m - linear, n + 1)};
  for (std::size_t k = 0; k <= n; ++k) {
    const T factor = k < n ? p.weight[k] : T{1};
    for (std::size_t i = linear; i < m; ++i)
      p.derivative(i - linear, k) = factor * a(i, linear + k);
  }
  for (std::size_t i = 0; i < m - linear; ++i) p.square += p.derivative(i, n) * p.derivative(i, n);
  return p;
}

/// Improves the exponents by the method of Levenberg and Marquardt, with the best weights in every
/// step. With exponents and weights both free the valleys of the sum of squares are too narrow to
/// follow. The result is empty if a weight is not positive.
template <typename T>
LogFit refine_exponents(const Vector& first, const Vector& at) {
  const std::size_t n = first.size();
  Numbers<T> exponent(first.begin(), first.end());
  const Numbers<T> points(at.begin(), at.end());
  T damping = T(1e-3L);
  Projection<T> now = project(exponent, points);
  for (int iteration = 0; iteration < 200 && damping < T(1e8L); ++iteration) {
    const std::size_t m = now.derivative.rows;
    Columns<T> a(m + n, n + 1);
    for (std::size_t k = 0; k <= n; ++k) {
      T square = 0;
      for (std::size_t i = 0; i < m; ++i) {
        a(i, k) = now.derivative(i, k);
        square += a(i, k) * a(i, k);
      }
      if (k < n) a(m + k, k) = std::sqrt(damping * square);
    }
    triangularise(a, n);
    const Numbers<T> step = back_substituted(a, n, n);
    Numbers<T> trial = exponent;
    T longest = 0;
    for (std::size_t k = 0; k < n; ++k) longest = std::max(longest, std::abs(step[k]));
    for (std::size_t k = 0; k < n; ++k)
      trial[k] += step[k] / std::max<T>(1, longest);  // At most a factor e in an exponent.
    Projection<T> there = project(trial, points);
    if (there.square < now.square) {
      const bool stalled = there.square > now.square * T(0.9999L) && damping < T(1e-6L);
      exponent = std::move(trial);
      now = std::move(there);
      damping = std::max<T>(damping / 10, T(1e-20L));
      if (stalled) break;
    } else {
      damping *= 4;
    }
  }
  LogFit fit;
  for (std::size_t k = 0; k <= n; ++k)
    if (!(now.weight[k] > 0)) return {};
  for (std::size_t k = 0; k < n; ++k) {
    fit.exponent.push_back(exponent[k]);
    fit.weight.push_back(std::log(static_cast<Real>(now.weight[k])));
  }
  fit.constant = std::log(static_cast<Real>(now.weight[n]));
  return fit;
}

/// Finds one extremum of the error for each run of equal sign.
Vector extrema(const LogFit& fit, const Vector& points) {
  Vector found;
  double best = 0;
  const Numbers<double> errors = fit.errors(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (found.empty() || errors[i] * best < 0) {
      found.push_back(points[i]);
      best = errors[i];
    } else if (std::abs(errors[i]) > std::abs(best)) {
      found.back() = points[i];
      best = errors[i];
    }
  }
  return found;
}

/// Improves a fit by exchange steps: 2K + 2 extrema determine 2K + 1 parameters and the ripple. The
/// best fit found is kept.
LogFit refine_ripple(LogFit fit, const Vector& points) {
  const std::size_t k_count = fit.size(), n = 2 * k_count + 1;
  Real worst = fit.largest_error(points);
  for (int iteration = 0; iteration < 20; ++iteration) {
    const Vector at = extrema(fit, points);
    if (at.size() != n + 1) break;
    Columns<Real> a(n + 1, n + 2);
    Real smallest = worst;
    for (std::size_t i = 0; i <= n; ++i) {
      const Real y = at[i], error = fit.error(y);
      for (std::size_t k = 0; k < k_count; ++k) {
        const Real t = std::exp(fit.exponent[k]);
        const Real term = y * std::exp(fit.weight[k] - t * y);
        a(i, k) = -t * y * term;
        a(i, k_count + k) = term;
      }
      a(i, n - 1) = y * std::exp(fit.constant);
      a(i, n) = i % 2 == 0 ? -1 : 1;
      a(i, n + 1) = -error;
      smallest = std::min(smallest, std::abs(error));
    }
    if (smallest > 0.9L * worst) break;
    triangularise(a, n + 1);
    const Vector step = back_substituted(a, n + 1, n + 1);
    bool better = false;
    for (Real by = 1; by > 0.02L && !better; by /= 2) {
      LogFit trial = fit.moved(step, by);
      const Real trial_worst = trial.largest_error(points);
      if (trial_worst < worst) {
        better = true;
        fit = std::move(trial);
        worst = trial_worst;
      }
    }
    if (!better) break;
  }
  return fit;
}

/// Makes first guesses with one term more. The best exponents of K + 1 terms interlace with those
/// of K terms. Because the gap to the new ones is not known, there are several distances beyond
/// both ends.
std::vector<Vector> guesses_with_one_more(const LogFit& fit, Real log_ratio) {
  const std::size_t n = fit.size();
  if (n == 0) return {{-log_ratio / 2}};
  Vector sorted = fit.exponent;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Vector> guesses;
  for (const Real reach : {0.3L, 1.0L, 2.0L}) {
    const Real first_gap = n > 1 ? sorted[1] - sorted[0] : 1,
               last_gap = n > 1 ? sorted[n - 1] - sorted[n - 2] : 1;
    Vector exponent{sorted[0] - reach * first_gap};
    for (std::size_t k = 0; k + 1 < n; ++k) exponent.push_back((sorted[k] + sorted[k + 1]) / 2);
    exponent.push_back(sorted[n - 1] + reach * last_gap);
    guesses.push_back(exponent);
    // This guess keeps the old exponents and adds one at the end: the largest move least.
    exponent = sorted;
    exponent.push_back(sorted[n - 1] + reach * last_gap);
    guesses.push_back(exponent);
  }
  return guesses;
}

}  // namespace

LogFit with_one_more(const LogFit& fit, Real ratio) {
  const std::size_t n = fit.size() + 1;
  const Vector points = graded_points(ratio, static_cast<int>(8 * n) + 40),
               fine = graded_points(ratio, 601);
  // The best fits gain this factor with each term. A fit that gains it needs no other guess.
  const Real pi = std::acos(Real{-1});
  const Real gain = std::exp(-pi * pi / std::log(4 * ratio));
  const Real good = n > 1 ? 1.3L * gain * fit.largest_error(fine) : 0;
  LogFit best;
  Real worst = 0;
  for (const Vector& guess : guesses_with_one_more(fit, std::log(ratio))) {
    LogFit trial = refine_exponents<double>(guess, points);
    if (trial.size() == 0) continue;
    const Real error = trial.largest_error(fine);
    if (best.size() == 0 || error < worst) {
      best = std::move(trial);
      worst = error;
    }
    if (worst < good) break;
  }
  return best.size() > 0 ? best : fit;
}

LogFit finished(const LogFit& fit, Real ratio) {
  return refine_ripple(fit, graded_points(ratio, 601));
}

ExponentialFit as_numbers(const LogFit& fit, Real ratio) {
  ExponentialFit result;
  for (std::size_t k = 0; k < fit.size(); ++k) {
    result.exponent.push_back(static_cast<double>(std::exp(fit.exponent[k])));
    result.weight.push_back(static_cast<double>(std::exp(fit.weight[k])));
  }
  result.constant = static_cast<double>(std::exp(fit.constant));
  result.error_relative = static_cast<double>(fit.largest_error(graded_points(ratio, 2001)));
  return result;
}

}  // namespace quasi::gw::fit
