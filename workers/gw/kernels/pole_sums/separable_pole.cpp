#include "workers/gw/kernels/pole_sums/separable_pole.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

/// The fits are ill-conditioned by nature: their normal numbers lose 8 to 12 digits. Exponents are
/// found in double, where residuals of 1e-9 still have digits, and finished in long double.
using Real = long double;
template <typename T>
using Numbers = std::vector<T>;
using Vector = Numbers<Real>;

constexpr int kMaxRationalTerms = 40;
/// Errors of 1e-9 for a ratio of 226, 1e-7 for 1000.
constexpr int kMaxExponentialTerms = 20;

/// Column-major matrix.
template <typename T>
struct Columns {
  std::size_t rows, columns;
  Numbers<T> value;
  Columns(std::size_t r, std::size_t c) : rows(r), columns(c), value(r * c) {}
  T* column(std::size_t j) { return value.data() + j * rows; }
  T& operator()(std::size_t i, std::size_t j) { return value[j * rows + i]; }
};
/// Row-major matrix.
struct Matrix {
  std::size_t rows, columns;
  Vector value;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), value(r * c) {}
  Real& operator()(std::size_t i, std::size_t j) { return value[i * columns + j]; }
};

/// Householder reflections that make the first n columns upper triangular, applied to all.
template <typename T>
void triangularise(Columns<T>& a, std::size_t n) {
  Numbers<T> v(a.rows);
  for (std::size_t k = 0; k < n; ++k) {
    T norm = 0;
    for (std::size_t i = k; i < a.rows; ++i) norm += a(i, k) * a(i, k);
    if (norm == 0) continue;
    norm = std::sqrt(norm);
    if (a(k, k) > 0) norm = -norm;
    for (std::size_t i = k; i < a.rows; ++i) v[i] = a(i, k);
    v[k] -= norm;
    T square = 0;
    for (std::size_t i = k; i < a.rows; ++i) square += v[i] * v[i];
    for (std::size_t j = k; j < a.columns; ++j) {
      T* const to = a.column(j);
      T dot = 0;
      for (std::size_t i = k; i < a.rows; ++i) dot += v[i] * to[i];
      dot *= 2 / square;
      for (std::size_t i = k; i < a.rows; ++i) to[i] -= dot * v[i];
    }
  }
}

/// x of R x = column j, R the triangle of the first n columns. A column without weight gets 0.
template <typename T>
Numbers<T> back_substituted(Columns<T>& a, std::size_t n, std::size_t j) {
  Numbers<T> x(n);
  for (std::size_t k = n; k-- > 0;) {
    T sum = a(k, j);
    for (std::size_t m = k + 1; m < n; ++m) sum -= a(k, m) * x[m];
    x[k] = a(k, k) == 0 ? 0 : sum / a(k, k);
  }
  return x;
}

/// 1/y ≈ e^η + Σ e^w e^{−y e^t}: logarithms, so that all stay positive.
struct LogFit {
  Vector exponent, weight;
  Real constant = 0;
  std::size_t size() const { return exponent.size(); }

  /// y (e^η + Σ …) − 1 at each point. Terms are positive and at most 1: double loses nothing.
  Numbers<double> errors(const Vector& points) const {
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
  Real largest_error(const Vector& points) const {
    double worst = 0;
    for (double error : errors(points)) worst = std::max(worst, std::abs(error));
    return worst;
  }
  /// The same error at one point without its rounding.
  Real error(Real y) const {
    Real sum = std::exp(constant);
    for (std::size_t k = 0; k < size(); ++k) sum += std::exp(weight[k] - y * std::exp(exponent[k]));
    return y * sum - 1;
  }
  LogFit moved(const Vector& step, Real by) const {
    LogFit fit = *this;
    for (std::size_t k = 0; k < size(); ++k) {
      fit.exponent[k] += by * step[k];
      fit.weight[k] += by * step[size() + k];
    }
    fit.constant += by * step[2 * size()];
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
  // Φ and y, then dΦ_k/d ln t_k without w_k, then the right side: one set of reflections for all.
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

/// Levenberg–Marquardt on the exponents alone, the weights always the best: with both free the sums
/// of squares have valleys too narrow to follow. Empty if a weight is not positive.
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

/// One extremum of the error for each run of equal sign.
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

/// Exchange steps: 2K + 1 parameters and the ripple from the 2K + 2 extrema. Keeps the best fit
/// found.
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

/// First guesses with one term more: the best exponents of K + 1 terms interlace with those of K;
/// and, because the gap to the new ones is not known, several distances beyond both ends.
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
    // The old ones, and one more at the end: the largest exponents move least.
    exponent = sorted;
    exponent.push_back(sorted[n - 1] + reach * last_gap);
    guesses.push_back(exponent);
  }
  return guesses;
}

/// One term more than `fit` by least squares: the best of the guesses. No worse than `fit` itself.
LogFit with_one_more(const LogFit& fit, Real ratio) {
  const std::size_t n = fit.size() + 1;
  const Vector points = graded_points(ratio, static_cast<int>(8 * n) + 40),
               fine = graded_points(ratio, 601);
  // The best fits gain this factor a term; one that does needs no other guess.
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

/// Least squares give the smallest sum of squares; the smallest largest error is up to this factor
/// below.
constexpr double kRippleGain = 6.0;

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

/// ω̃/(x + ω̃) with τ = 1/ω̃.
Real pole_factor(Real x, Real tau) { return 1 / (1 + x * tau); }

SeparablePole fit_rational(const PoleRange& range, double tolerance) {
  // Crosses are chosen where the remainder is largest (adaptive cross approximation, full
  // pivoting).
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
                     std::to_string(kMaxRationalTerms) +
                     " terms; ask for a looser tolerance or the two products");
}

/// Fits by (ratio, tolerance): a job asks for the same few hundreds of times.
class KnownFits {
 public:
  const ExponentialFit* find(double ratio, double tolerance) {
    const std::lock_guard lock(mutex_);
    const auto found = fits_.find({ratio, tolerance});
    return found == fits_.end() ? nullptr : &found->second;
  }
  void add(double ratio, double tolerance, const ExponentialFit& fit) {
    const std::lock_guard lock(mutex_);
    fits_.emplace(std::pair{ratio, tolerance}, fit);
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<double, double>, ExponentialFit> fits_;
};

SeparablePole scaled(const ExponentialFit& fit, double y_min) {
  SeparablePole pole;
  pole.family = SeparableFamily::kExponential;
  for (std::size_t k = 0; k < fit.exponent.size(); ++k) {
    pole.node.push_back(fit.exponent[k] / y_min);
    pole.weight.push_back(fit.weight[k] / y_min);
  }
  pole.node.push_back(std::numeric_limits<double>::infinity());
  pole.weight.push_back(1.0);
  pole.constant = fit.constant / y_min;
  pole.error = fit.error_relative;
  return pole;
}

SeparablePole fit_exponential(const PoleRange& range, double tolerance) {
  static KnownFits known;
  const double y_min = range.x_min_ry + range.pole_min_ry;
  // Rounded up to a power of 1.05, so that like ranges share a fit: a hundredth of a term more on
  // average.
  const double exact_ratio = (range.x_max_ry + range.pole_max_ry) / y_min;
  const double ratio =
      std::pow(1.05, std::max(1.0, std::ceil(std::log(exact_ratio) / std::log(1.05) - 1e-9)));
  if (const ExponentialFit* fit = known.find(ratio, tolerance)) return scaled(*fit, y_min);
  const Vector fine = graded_points(ratio, 601);
  LogFit logs;
  for (int n = 1; n <= kMaxExponentialTerms; ++n) {
    logs = with_one_more(logs, ratio);
    if (static_cast<int>(logs.size()) < n) break;
    if (logs.largest_error(fine) > kRippleGain * tolerance) continue;
    const ExponentialFit fit = as_numbers(finished(logs, ratio), ratio);
    if (fit.error_relative > tolerance) continue;
    known.add(ratio, tolerance, fit);
    return scaled(fit, y_min);
  }
  throw NotConverged("an exponential sum for 1/y over a ratio of " + std::to_string(ratio) +
                     " does not reach the tolerance with " + std::to_string(kMaxExponentialTerms) +
                     " terms; ask for a looser tolerance or for rational sums");
}

}  // namespace

ExponentialFit fit_reciprocal(double ratio, int n_terms) {
  LogFit fit;
  for (int n = 1; n <= n_terms; ++n) fit = with_one_more(fit, ratio);
  return as_numbers(finished(fit, ratio), ratio);
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
    throw InvalidInput(
        "separable plasmon poles need 0 ≤ x_min ≤ x_max, 0 < pole_min ≤ pole_max and a "
        "tolerance above 0; got x from " +
        std::to_string(range.x_min_ry) + " to " + std::to_string(range.x_max_ry) +
        " Ry, poles from " + std::to_string(range.pole_min_ry) + " to " +
        std::to_string(range.pole_max_ry) + " Ry, tolerance " + std::to_string(tolerance));
  return family == SeparableFamily::kRational ? fit_rational(range, tolerance)
                                              : fit_exponential(range, tolerance);
}

}  // namespace quasi::gw
