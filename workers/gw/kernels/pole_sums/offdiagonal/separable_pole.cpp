#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/exponential_fit.hpp"

namespace quasi::gw {
namespace {

using fit::Real;
using fit::Vector;

constexpr int kMaxRationalTerms = 40;
/// Largest number of terms. It gives an error of 1e-9 for a ratio of 226, and of 1e-7 for 1000.
constexpr int kMaxExponentialTerms = 20;

/// Row-major matrix.
struct Matrix {
  std::size_t rows, columns;
  Vector value;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), value(r * c) {}
  Real& operator()(std::size_t i, std::size_t j) { return value[i * columns + j]; }
};

/// ω̃/(x + ω̃) = 1/(1 + x τ) with τ = 1/ω̃.
Real pole_factor(Real x, Real tau) { return 1 / (1 + x * tau); }

SeparablePole fit_rational(const PoleRange& range, double tolerance) {
  // Crosses are chosen where the remainder is largest (adaptive cross approximation, full
  // pivoting).
  constexpr std::size_t kPoints = 160;
  const auto spread = [](Real low, Real high, std::size_t n) {
    // A range from zero starts four decades below its end, because closer points act like zero.
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

/// Fits by (ratio, tolerance). A job needs the same few fits hundreds of times.
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
  // The ratio is rounded up to a power of 1.05, so that similar ranges share a fit. That costs a
  // hundredth of a term on average.
  const double exact_ratio = (range.x_max_ry + range.pole_max_ry) / y_min;
  const double ratio =
      std::pow(1.05, std::max(1.0, std::ceil(std::log(exact_ratio) / std::log(1.05) - 1e-9)));
  if (const ExponentialFit* found = known.find(ratio, tolerance)) return scaled(*found, y_min);
  const Vector fine = fit::graded_points(ratio, 601);
  fit::LogFit logs;
  for (int n = 1; n <= kMaxExponentialTerms; ++n) {
    logs = fit::with_one_more(logs, ratio);
    if (static_cast<int>(logs.size()) < n) break;
    if (logs.largest_error(fine) > fit::kRippleGain * tolerance) continue;
    const ExponentialFit found = fit::as_numbers(fit::finished(logs, ratio), ratio);
    if (found.error_relative > tolerance) continue;
    known.add(ratio, tolerance, found);
    return scaled(found, y_min);
  }
  throw NotConverged("an exponential sum for 1/y over a ratio of " + std::to_string(ratio) +
                     " does not reach the tolerance with " + std::to_string(kMaxExponentialTerms) +
                     " terms; ask for a looser tolerance or for rational sums");
}

}  // namespace

ExponentialFit fit_reciprocal(double ratio, int n_terms) {
  fit::LogFit logs;
  for (int n = 1; n <= n_terms; ++n) logs = fit::with_one_more(logs, ratio);
  return fit::as_numbers(fit::finished(logs, ratio), ratio);
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
