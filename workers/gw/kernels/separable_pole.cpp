#include "workers/gw/kernels/separable_pole.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

/// The fits are ill-conditioned by nature: their normal numbers lose 8 to 12 digits.
using Real = long double;
using Vector = std::vector<Real>;

constexpr int kMaxRationalTerms = 40;
/// Beyond this the fit's normal numbers exceed what Real can hold: errors near 4e-6 stay.
constexpr int kMaxExponentialTerms = 16;

/// Row-major matrix.
struct Matrix {
  std::size_t rows, columns;
  Vector value;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), value(r * c) {}
  Real& operator()(std::size_t i, std::size_t j) { return value[i * columns + j]; }
};

/// argmin ‖a x − b‖ by Householder reflections. A column without weight gets 0.
Vector least_squares(Matrix a, Vector b) {
  const std::size_t n = a.columns;
  for (std::size_t k = 0; k < n; ++k) {
    Real norm = 0;
    for (std::size_t i = k; i < a.rows; ++i) norm += a(i, k) * a(i, k);
    if (norm == 0) continue;
    norm = std::sqrt(norm);
    if (a(k, k) > 0) norm = -norm;
    Vector v(a.rows);
    for (std::size_t i = k; i < a.rows; ++i) v[i] = a(i, k);
    v[k] -= norm;
    Real square = 0;
    for (std::size_t i = k; i < a.rows; ++i) square += v[i] * v[i];
    const auto reflect = [&](auto&& entry) {
      Real dot = 0;
      for (std::size_t i = k; i < a.rows; ++i) dot += v[i] * entry(i);
      dot *= 2 / square;
      for (std::size_t i = k; i < a.rows; ++i) entry(i) -= dot * v[i];
    };
    for (std::size_t j = k; j < n; ++j) reflect([&](std::size_t i) -> Real& { return a(i, j); });
    reflect([&](std::size_t i) -> Real& { return b[i]; });
  }
  Vector x(n);
  for (std::size_t k = n; k-- > 0;) {
    Real sum = b[k];
    for (std::size_t j = k + 1; j < n; ++j) sum -= a(k, j) * x[j];
    x[k] = a(k, k) == 0 ? 0 : sum / a(k, k);
  }
  return x;
}

/// Logarithms of exponents and weights: both stay positive.
struct LogFit {
  Vector exponent, weight;
  std::size_t size() const { return exponent.size(); }

  /// y Σ w e^{−t y} − 1 at each point.
  Vector errors(const Vector& points) const {
    Vector t, w, found;
    for (std::size_t k = 0; k < size(); ++k) {
      t.push_back(std::exp(exponent[k]));
      w.push_back(std::exp(weight[k]));
    }
    for (Real y : points) {
      Real sum = 0;
      for (std::size_t k = 0; k < size(); ++k)
        if (t[k] * y < 60) sum += w[k] * std::exp(-t[k] * y);
      found.push_back(y * sum - 1);
    }
    return found;
  }
  Real largest_error(const Vector& points) const {
    Real worst = 0;
    for (Real error : errors(points)) worst = std::max(worst, std::abs(error));
    return worst;
  }
  /// Derivatives of error(y) after the logarithms, exponents first.
  void derivative(Real y, Real* row) const {
    for (std::size_t k = 0; k < size(); ++k) {
      const Real t = std::exp(exponent[k]);
      const Real term = y * std::exp(weight[k] - t * y);
      row[k] = -t * y * term;
      row[size() + k] = term;
    }
  }
  LogFit moved(const Vector& step, Real by) const {
    LogFit fit = *this;
    for (std::size_t k = 0; k < size(); ++k) {
      fit.exponent[k] += by * step[k];
      fit.weight[k] += by * step[size() + k];
    }
    return fit;
  }
};

/// Points from 1 to ratio, evenly in the logarithm but closer at both ends.
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

Real sum_of_squares(const LogFit& fit, const Vector& points) {
  Real sum = 0;
  for (Real error : fit.errors(points)) sum += error * error;
  return sum;
}

/// Levenberg–Marquardt on the squared relative error.
LogFit refine_least_squares(LogFit fit, const Vector& points) {
  const std::size_t n = 2 * fit.size();
  Real damping = 1e-3L;
  Real square = sum_of_squares(fit, points);
  for (int iteration = 0; iteration < 300 && damping < 1e6L; ++iteration) {
    Matrix a(points.size() + n, n);
    Vector b = fit.errors(points);
    b.resize(points.size() + n);
    for (std::size_t i = 0; i < points.size(); ++i) {
      fit.derivative(points[i], &a(i, 0));
      b[i] = -b[i];
    }
    // Damping in proportion to each column: parameters of the small terms may move as far.
    for (std::size_t k = 0; k < n; ++k) {
      Real square_of_column = 0;
      for (std::size_t i = 0; i < points.size(); ++i) square_of_column += a(i, k) * a(i, k);
      a(points.size() + k, k) = std::sqrt(damping * square_of_column);
    }
    const LogFit trial = fit.moved(least_squares(a, b), 1);
    const Real trial_square = sum_of_squares(trial, points);
    if (trial_square < square) {
      const bool stalled = trial_square > square * 0.999L && damping < 1e-12L;
      fit = trial;
      square = trial_square;
      damping = std::max(damping / 10, Real{1e-26L});
      if (stalled) break;
    } else {
      damping *= 4;
    }
  }
  return fit;
}

/// One extremum of the error for each run of equal sign.
Vector extrema(const LogFit& fit, const Vector& points) {
  Vector found;
  Real best = 0;
  const Vector errors = fit.errors(points);
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

/// Exchange steps: 2K parameters and the ripple from the 2K + 1 extrema. Keeps the best fit found.
LogFit refine_ripple(LogFit fit, const Vector& points) {
  const std::size_t n = 2 * fit.size();
  Real worst = fit.largest_error(points);
  for (int iteration = 0; iteration < 20; ++iteration) {
    const Vector at = extrema(fit, points);
    if (at.size() != n + 1) break;
    Matrix a(n + 1, n + 1);
    Vector b = fit.errors(at);
    Real smallest = worst;
    for (std::size_t i = 0; i <= n; ++i) {
      fit.derivative(at[i], &a(i, 0));
      a(i, n) = i % 2 == 0 ? -1 : 1;
      b[i] = -b[i];
      smallest = std::min(smallest, std::abs(b[i]));
    }
    if (smallest > 0.9L * worst) break;
    const Vector step = least_squares(a, b);
    bool better = false;
    for (Real by = 1; by > 0.02L && !better; by /= 2) {
      const LogFit trial = fit.moved(step, by);
      const Real trial_worst = trial.largest_error(points);
      if (trial_worst < worst) {
        better = true;
        fit = trial;
        worst = trial_worst;
      }
    }
    if (!better) break;
  }
  return fit;
}

/// A first guess with one term more: the best exponents of K + 1 terms interlace with those of K.
LogFit with_one_more(const LogFit& fit, Real log_ratio) {
  const std::size_t n = fit.size();
  if (n == 0) return {{-log_ratio / 2}, {-log_ratio / 2}};
  std::vector<std::size_t> order(n);
  for (std::size_t k = 0; k < n; ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return fit.exponent[a] < fit.exponent[b]; });
  Vector exponent, weight;
  for (std::size_t k : order) {
    exponent.push_back(fit.exponent[k]);
    weight.push_back(fit.weight[k]);
  }
  LogFit more;
  const auto add = [&](Real e, Real w) {
    more.exponent.push_back(e);
    more.weight.push_back(w);
  };
  const Real first_gap = n > 1 ? exponent[1] - exponent[0] : log_ratio / 2;
  const Real last_gap = n > 1 ? exponent[n - 1] - exponent[n - 2] : log_ratio / 2;
  add(exponent[0] - 0.3L * first_gap, weight[0] - 0.2L * first_gap);
  for (std::size_t k = 0; k + 1 < n; ++k)
    add((exponent[k] + exponent[k + 1]) / 2, (weight[k] + weight[k + 1]) / 2);
  add(exponent[n - 1] + 0.6L * last_gap, weight[n - 1] + 0.6L * last_gap);
  return more;
}

/// One term more than `fit`, refined.
LogFit refined_with_one_more(const LogFit& fit, Real ratio) {
  const std::size_t n = fit.size() + 1;
  const LogFit start = refine_least_squares(with_one_more(fit, std::log(ratio)),
                                            graded_points(ratio, static_cast<int>(10 * n) + 20));
  return refine_ripple(start, graded_points(ratio, 601));
}

ExponentialFit as_numbers(const LogFit& fit, Real ratio) {
  ExponentialFit result;
  for (std::size_t k = 0; k < fit.size(); ++k) {
    result.exponent.push_back(static_cast<double>(std::exp(fit.exponent[k])));
    result.weight.push_back(static_cast<double>(std::exp(fit.weight[k])));
  }
  result.error_relative = static_cast<double>(fit.largest_error(graded_points(ratio, 2001)));
  return result;
}

/// ω̃/(x + ω̃) with τ = 1/ω̃.
Real pole_factor(Real x, Real tau) { return 1 / (1 + x * tau); }

SeparablePole fit_rational(const PoleRange& range, double tolerance) {
  // Crosses are chosen where the remainder is largest (adaptive cross approximation, full pivoting).
  constexpr std::size_t kPoints = 160;
  const auto spread = [](Real low, Real high, std::size_t n) {
    // From zero the logarithm starts four decades below the end: closer points look like zero.
    Vector points(n);
    const Real start = low > 0 ? low : high * 1e-4L;
    for (std::size_t i = 0; i < n; ++i)
      points[i] = high <= start ? high : start * std::pow(high / start, Real(i) / (n - 1));
    points.front() = low;
    return points;
  };
  const auto grid_of = [&](std::size_t n, Vector& x, Vector& tau) {
    x = spread(range.x_min_ry, std::max(range.x_max_ry, range.x_min_ry), n);
    tau = spread(0, 1 / Real(range.pole_min_ry), n);
  };
  Vector x, tau;
  grid_of(kPoints, x, tau);
  Matrix rest(x.size(), tau.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < tau.size(); ++j) rest(i, j) = pole_factor(x[i], tau[j]);
  SeparablePole fit;
  fit.family = SeparableFamily::kRational;
  Vector fine_x, fine_tau;
  grid_of(3 * kPoints + 1, fine_x, fine_tau);
  while (fit.size() < kMaxRationalTerms) {
    std::size_t p = 0, q = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < tau.size(); ++j)
        if (std::abs(rest(i, j)) > std::abs(rest(p, q))) {
          p = i;
          q = j;
        }
    const Real pivot = rest(p, q);
    if (pivot != 0) {
      fit.node.push_back(static_cast<double>(x[p]));
      fit.companion.push_back(static_cast<double>(tau[q]));
      Vector column(x.size()), row(tau.size());
      for (std::size_t i = 0; i < x.size(); ++i) column[i] = rest(i, q) / pivot;
      for (std::size_t j = 0; j < tau.size(); ++j) row[j] = rest(p, j);
      for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < tau.size(); ++j) rest(i, j) -= column[i] * row[j];
    }
    if (std::abs(pivot) > 4 * tolerance) continue;
    fit.error = 0.0;
    for (Real xi : fine_x) {
      const auto c = fit.coefficients(static_cast<double>(xi));
      for (Real tj : fine_tau) {
        Real sum = -pole_factor(static_cast<double>(xi), tj);
        for (std::size_t k = 0; k < c.size(); ++k) sum += c[k] * pole_factor(fit.node[k], tj);
        fit.error = std::max(fit.error, static_cast<double>(std::abs(sum)));
      }
    }
    if (fit.error <= tolerance) return fit;
    if (pivot == 0) break;
  }
  throw NotConverged("interpolating the plasmon poles to the tolerance asked for needs more than " +
                     std::to_string(kMaxRationalTerms) + " terms; ask for a looser tolerance or the two products");
}

SeparablePole fit_exponential(const PoleRange& range, double tolerance) {
  const double y_min = range.x_min_ry + range.pole_min_ry;
  const double ratio = (range.x_max_ry + range.pole_max_ry) / y_min;
  LogFit logs;
  for (int n = 1; n <= kMaxExponentialTerms; ++n) {
    logs = refined_with_one_more(logs, ratio);
    const ExponentialFit fit = as_numbers(logs, ratio);
    if (fit.error_relative > tolerance) continue;
    SeparablePole pole;
    pole.family = SeparableFamily::kExponential;
    for (int k = 0; k < n; ++k) {
      pole.node.push_back(fit.exponent[static_cast<std::size_t>(k)] / y_min);
      pole.weight.push_back(fit.weight[static_cast<std::size_t>(k)] / y_min);
    }
    pole.node.push_back(std::numeric_limits<double>::infinity());
    pole.weight.push_back(1.0);
    pole.error = fit.error_relative;
    return pole;
  }
  throw NotConverged("an exponential sum for 1/y over a ratio of " + std::to_string(ratio) +
                     " does not reach the tolerance with " +
                     std::to_string(kMaxExponentialTerms) +
                     " terms; ask for a looser tolerance or for rational sums");
}

}  // namespace

ExponentialFit fit_reciprocal(double ratio, int n_terms) {
  LogFit fit;
  while (fit.size() < static_cast<std::size_t>(n_terms)) fit = refined_with_one_more(fit, ratio);
  return as_numbers(fit, ratio);
}

std::vector<double> SeparablePole::coefficients(double x_magnitude_ry) const {
  const std::size_t n = node.size();
  std::vector<double> c(n);
  if (family == SeparableFamily::kExponential) {
    for (std::size_t k = 0; k < n; ++k)
      c[k] = std::isinf(node[k]) ? weight[k] : weight[k] * std::exp(-node[k] * x_magnitude_ry);
    return c;
  }
  // c·F(ξ, τ_J) = F(x, τ_J). A matrix 1/(1 + ξ_k τ_j) is of Cauchy's kind, whose interpolant is
  // known in closed form: c_k = [Π_j (1 + ξ_k τ_j)/(1 + x τ_j)] · Π_{m≠k} (x − ξ_m)/(ξ_k − ξ_m).
  for (std::size_t k = 0; k < n; ++k) {
    Real product = 1;
    for (std::size_t j = 0; j < n; ++j) {
      product *= (1 + Real(node[k]) * companion[j]) / (1 + Real(x_magnitude_ry) * companion[j]);
      if (j != k) product *= (Real(x_magnitude_ry) - node[j]) / (Real(node[k]) - node[j]);
    }
    c[k] = static_cast<double>(product);
  }
  return c;
}

SeparablePole fit_separable_pole(SeparableFamily family, const PoleRange& range, double tolerance) {
  if (!(range.x_min_ry >= 0.0 && range.x_max_ry >= range.x_min_ry && range.pole_min_ry > 0.0 &&
        range.pole_max_ry >= range.pole_min_ry && tolerance > 0.0))
    throw InvalidInput("separable plasmon poles need 0 ≤ x_min ≤ x_max, 0 < pole_min ≤ pole_max and a "
                       "tolerance above 0; got x from " + std::to_string(range.x_min_ry) + " to " +
                       std::to_string(range.x_max_ry) + " Ry, poles from " +
                       std::to_string(range.pole_min_ry) + " to " + std::to_string(range.pole_max_ry) +
                       " Ry, tolerance " + std::to_string(tolerance));
  return family == SeparableFamily::kRational ? fit_rational(range, tolerance)
                                              : fit_exponential(range, tolerance);
}

}  // namespace quasi::gw
