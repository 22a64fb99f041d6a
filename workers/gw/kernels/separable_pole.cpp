#include "workers/gw/kernels/separable_pole.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

/// The fits are ill-conditioned by nature: their normal numbers lose 8 to 12 digits.
using Real = long double;
using Vector = std::vector<Real>;

constexpr int kMaxRationalTerms = 40;
/// Errors of 1e-9 for a ratio of 226, 1e-7 for 1000.
constexpr int kMaxExponentialTerms = 20;

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

/// y Σ w e^{−t y} ≈ 1 at points, exponents given: columns Φ_k = y e^{−t_k y} reduced to Q R, so that the best weights and the
/// derivatives of the remaining residual after the exponents follow (variable projection, Kaufman's form).
struct Projection {
  Vector weight;        ///< best for these exponents
  Vector residual;      ///< of Φ w = 1, in the basis orthogonal to Φ
  Matrix derivative;    ///< of that residual after ln t_k
  Real square = 0;
};
Projection project(const Vector& exponent, const Vector& points) {
  const std::size_t n = exponent.size(), m = points.size();
  // Φ, then dΦ_k/d ln t_k without w_k, then the right side: one set of reflections for all.
  Matrix a(m, 2 * n + 1);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      const Real ty = std::exp(exponent[k]) * points[i];
      a(i, k) = points[i] * std::exp(-ty);
      a(i, n + k) = -ty * a(i, k);
    }
    a(i, 2 * n) = 1;
  }
  for (std::size_t k = 0; k < n; ++k) {
    Real norm = 0;
    for (std::size_t i = k; i < m; ++i) norm += a(i, k) * a(i, k);
    if (norm == 0) continue;
    norm = std::sqrt(norm);
    if (a(k, k) > 0) norm = -norm;
    Vector v(m);
    for (std::size_t i = k; i < m; ++i) v[i] = a(i, k);
    v[k] -= norm;
    Real square = 0;
    for (std::size_t i = k; i < m; ++i) square += v[i] * v[i];
    for (std::size_t j = k; j <= 2 * n; ++j) {
      Real dot = 0;
      for (std::size_t i = k; i < m; ++i) dot += v[i] * a(i, j);
      dot *= 2 / square;
      for (std::size_t i = k; i < m; ++i) a(i, j) -= dot * v[i];
    }
  }
  Projection p{.weight = Vector(n), .residual = {}, .derivative = Matrix(m - n, n)};
  for (std::size_t k = n; k-- > 0;) {
    Real sum = a(k, 2 * n);
    for (std::size_t j = k + 1; j < n; ++j) sum -= a(k, j) * p.weight[j];
    p.weight[k] = a(k, k) == 0 ? 0 : sum / a(k, k);
  }
  for (std::size_t i = n; i < m; ++i) {
    p.residual.push_back(a(i, 2 * n));
    p.square += a(i, 2 * n) * a(i, 2 * n);
    for (std::size_t k = 0; k < n; ++k) p.derivative(i - n, k) = a(i, n + k) * p.weight[k];
  }
  return p;
}

/// Levenberg–Marquardt on the exponents alone, the weights always the best: with both free the sums of squares have
/// valleys too narrow to follow. Empty if a weight is not positive.
LogFit refine_exponents(Vector exponent, const Vector& points) {
  const std::size_t n = exponent.size();
  Real damping = 1e-3L;
  Projection now = project(exponent, points);
  for (int iteration = 0; iteration < 200 && damping < 1e8L; ++iteration) {
    const std::size_t m = now.residual.size();
    Matrix a(m + n, n);
    Vector b = now.residual;
    b.resize(m + n);
    for (std::size_t k = 0; k < n; ++k) {
      Real square = 0;
      for (std::size_t i = 0; i < m; ++i) {
        a(i, k) = now.derivative(i, k);
        square += a(i, k) * a(i, k);
      }
      a(m + k, k) = std::sqrt(damping * square);
    }
    const Vector step = least_squares(a, b);
    Vector trial = exponent;
    Real longest = 0;
    for (std::size_t k = 0; k < n; ++k) longest = std::max(longest, std::abs(step[k]));
    for (std::size_t k = 0; k < n; ++k) trial[k] += step[k] / std::max<Real>(1, longest);  // At most a factor e in an exponent.
    const Projection there = project(trial, points);
    if (there.square < now.square) {
      const bool stalled = there.square > now.square * 0.9999L && damping < 1e-6L;
      exponent = trial;
      now = there;
      damping = std::max(damping / 10, Real{1e-20L});
      if (stalled) break;
    } else {
      damping *= 4;
    }
  }
  LogFit fit;
  for (std::size_t k = 0; k < n; ++k) {
    if (!(now.weight[k] > 0)) return {};
    fit.exponent.push_back(exponent[k]);
    fit.weight.push_back(std::log(now.weight[k]));
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

/// First guesses with one term more: the best exponents of K + 1 terms interlace with those of K; and, because the gap to the new ones is
/// not known, several distances beyond both ends.
std::vector<Vector> guesses_with_one_more(const LogFit& fit, Real log_ratio) {
  const std::size_t n = fit.size();
  if (n == 0) return {{-log_ratio / 2}};
  Vector sorted = fit.exponent;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Vector> guesses;
  for (const Real reach : {0.3L, 1.0L, 2.0L}) {
    const Real first_gap = n > 1 ? sorted[1] - sorted[0] : 1, last_gap = n > 1 ? sorted[n - 1] - sorted[n - 2] : 1;
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

/// One term more than `fit`, refined: the best of the guesses. No worse than `fit` itself.
LogFit refined_with_one_more(const LogFit& fit, Real ratio) {
  const std::size_t n = fit.size() + 1;
  const Vector points = graded_points(ratio, static_cast<int>(12 * n) + 40), fine = graded_points(ratio, 601);
  // The best fits gain this factor a term; one that does needs no other guess.
  const Real pi = std::acos(Real{-1});
  const Real gain = std::exp(-pi * pi / std::log(4 * ratio));
  const Real good = n > 1 ? 1.2L * gain * fit.largest_error(fine) : 0;
  LogFit best;
  Real worst = 0;
  for (const Vector& guess : guesses_with_one_more(fit, std::log(ratio))) {
    LogFit trial = refine_exponents(guess, points);
    if (trial.size() == 0) continue;
    trial = refine_ripple(std::move(trial), fine);
    const Real error = trial.largest_error(fine);
    if (best.size() == 0 || error < worst) {
      best = std::move(trial);
      worst = error;
    }
    if (worst < good) break;
  }
  return best.size() > 0 ? best : fit;
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
  pole.error = fit.error_relative;
  return pole;
}

SeparablePole fit_exponential(const PoleRange& range, double tolerance) {
  static KnownFits known;
  const double y_min = range.x_min_ry + range.pole_min_ry;
  // Rounded up to a power of 1.2, so that like ranges share a fit: a twentieth of a term more on average.
  const double exact_ratio = (range.x_max_ry + range.pole_max_ry) / y_min;
  const double ratio = std::pow(1.2, std::max(1.0, std::ceil(std::log(exact_ratio) / std::log(1.2) - 1e-9)));
  if (const ExponentialFit* fit = known.find(ratio, tolerance)) return scaled(*fit, y_min);
  LogFit logs;
  for (int n = 1; n <= kMaxExponentialTerms; ++n) {
    logs = refined_with_one_more(logs, ratio);
    if (static_cast<int>(logs.size()) < n) break;
    const ExponentialFit fit = as_numbers(logs, ratio);
    if (fit.error_relative > tolerance) continue;
    known.add(ratio, tolerance, fit);
    return scaled(fit, y_min);
  }
  throw NotConverged("an exponential sum for 1/y over a ratio of " + std::to_string(ratio) +
                     " does not reach the tolerance with " +
                     std::to_string(kMaxExponentialTerms) +
                     " terms; ask for a looser tolerance or for rational sums");
}

}  // namespace

ExponentialFit fit_reciprocal(double ratio, int n_terms) {
  LogFit fit;
  for (int n = 1; n <= n_terms; ++n) fit = refined_with_one_more(fit, ratio);
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
