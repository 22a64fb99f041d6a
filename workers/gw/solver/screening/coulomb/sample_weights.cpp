#include "workers/gw/solver/screening/coulomb/sample_weights.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"

namespace quasi::gw {
namespace {

/// Fit of a polynomial to values at 0 and at the lengths of sample_lengths(). They are the extrema
/// of a Chebyshev polynomial, for which the sums of its least squares are orthogonal.
class LobattoFit {
 public:
  /// @param n  number of lengths
  LobattoFit(std::size_t n, std::size_t degree) : n_(n), degree_(std::min(n, degree)) {}
  /// Returns the coefficient of each value in the polynomial at p. @param x  2p/P − 1
  std::vector<double> operator()(double x) const {
    std::vector<double> coefficient(n_ + 1);
    double before = 1.0, now = x;
    for (std::size_t k = 0; k <= degree_; ++k) {
      const double here = k == 0 ? 1.0 : now;
      const double share = (k == 0 || k == n_ ? 1.0 : 2.0) / static_cast<double>(n_);
      for (std::size_t j = 0; j <= n_; ++j) {
        const double angle = kPi * (1.0 - static_cast<double>(j) / static_cast<double>(n_));
        coefficient[j] += (j == 0 || j == n_ ? 0.5 : 1.0) * share * here *
                          std::cos(static_cast<double>(k) * angle);
      }
      if (k > 0) before = std::exchange(now, 2.0 * x * now - before);
    }
    return coefficient;
  }

 private:
  std::size_t n_, degree_;
};

/// Returns γ(p) by a polynomial of degree 8 or less. Values at more lengths are smoothed by it.
SheetScreening smooth_screening(const std::vector<double>& length,
                                const std::vector<std::complex<double>>& gamma) {
  constexpr std::size_t kDegree = 8;
  const std::size_t n = length.size();
  std::vector<double> p{0.0};
  if (n <= kDegree) {
    p.insert(p.end(), length.begin(), length.end());
    return {std::move(p), gamma};
  }
  const LobattoFit fit(n, kDegree);
  std::vector<std::complex<double>> values;
  for (const double at : sample_lengths(static_cast<int>(kDegree), length.back())) p.push_back(at);
  for (const double at : p) {
    const std::vector<double> coefficient = fit(2.0 * at / length.back() - 1.0);
    values.emplace_back();
    for (std::size_t j = 0; j <= n; ++j) values.back() += coefficient[j] * gamma[j];
  }
  return {std::move(p), std::move(values)};
}

/// Calls use(p, weight) for the points of an integral over the plane, and with negative weights for
/// those of the grid beside 0. The weights contain a window e^{−y} Σ_{m<6} y^m/m!, y = (p/s)²,
/// which is 1 − O(p^12) at p = 0. Its transform falls as a Gaussian, so that s of two spacings
/// gives the weight of 1/p to 1e-7 and that of p to 1e-6.
template <typename Use>
void for_each_point(const PlaneOfGrid& plane, const Use& use) {
  constexpr double kSpacings = 2.0, kEnd = 60.0;  // the window at y = 60 is 6e-20
  constexpr int kHalvings = 40, kPanels = 14, kOrder = 20, kTerms = 6;
  const auto& [a, b, half_length] = plane;
  const double aa = dot(a, a), bb = dot(b, b), ab = dot(a, b),
               area = std::sqrt(dot(cross(a, b), cross(a, b)));
  // The shortest vector of the dual lattice bounds the spacing.
  const double spacing =
                   area / std::sqrt(std::min({aa, bb, aa + bb - 2.0 * ab, aa + bb + 2.0 * ab})),
               s = kSpacings * spacing, end = s * std::sqrt(kEnd);
  const auto window = [&](double p) {
    const double y = p * p / (s * s);
    double sum = 0.0, term = 1.0;
    for (int m = 0; m < kTerms; ++m, term *= y / m) sum += term;
    return std::exp(-y) * sum;
  };
  const GaussLegendre gauss(kOrder);
  const auto integrate = [&](double from, double to) {
    for (std::size_t i = 0; i < gauss.node.size(); ++i) {
      const double p = from + (to - from) * gauss.node[i];
      use(p, 2.0 * kPi * p * window(p) * (to - from) * gauss.weight[i] / area);
    }
  };
  const double inner = end / 8.0;
  for (int k = 0; k < kHalvings; ++k)
    integrate(k + 1 < kHalvings ? std::ldexp(inner, -k - 1) : 0.0, std::ldexp(inner, -k));
  for (int k = 0; k < kPanels; ++k)
    integrate(inner + k * (end - inner) / kPanels, inner + (k + 1) * (end - inner) / kPanels);
  const int reach_a = static_cast<int>(end * std::sqrt(bb) / area) + 1,
            reach_b = static_cast<int>(end * std::sqrt(aa) / area) + 1;
  for (int i = -reach_a; i <= reach_a; ++i)
    for (int j = -reach_b; j <= reach_b; ++j) {
      const double p = std::sqrt(i * i * aa + 2.0 * i * j * ab + j * j * bb);
      if (p > 0.0 && p < end) use(p, -window(p));
    }
}

}  // namespace

SampleWeights sample_weights(const PlaneOfGrid& plane, const std::vector<double>& length,
                             const std::vector<std::complex<double>>& gamma) {
  constexpr std::size_t kDegree = 6;
  const std::size_t n = length.size();
  const SheetScreening screening = smooth_screening(length, gamma);
  const auto head = [&](double p) {
    const double v = coulomb_slab(p, 0.0, plane.half_length_bohr);
    return v / (1.0 + screening(p).real() * p * p * v / kEightPi);
  };
  const LobattoFit fit(n, kDegree);
  std::vector<double> sum(n + 1);
  for_each_point(plane, [&](double p, double weight) {
    const double factor = weight * head(p);
    const std::vector<double> coefficient = fit(2.0 * p / length.back() - 1.0);
    for (std::size_t j = 0; j <= n; ++j) sum[j] += factor * coefficient[j];
  });
  SampleWeights weights{.at_zero = sum[0], .of_sample = {}};
  for (std::size_t j = 0; j < n; ++j) weights.of_sample.push_back(sum[j + 1] / head(length[j]));
  return weights;
}

}  // namespace quasi::gw
