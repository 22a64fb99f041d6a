#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <type_traits>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Rule by which S(iu) is continued between the points of the imaginary axis (docs/theory/gw.md
/// 6.5).
enum class ImaginaryRule {
  kConstant,   ///< S is constant around each point, with edges half way (as in BerkeleyGW)
  kQuadratic,  ///< parabolas through three neighbours, with exact moments of the kernel
};

/// Limit below which |x| counts as x = 0⁺. Energies of one multiplet differ by rounding and must
/// lie on one side of the step that the residues make at x = 0.
inline constexpr double kSameEnergy_ry = 1e-7;
/// Returns x, or 0 if |x| is below kSameEnergy_ry.
inline double snapped(double x_ry) { return std::abs(x_ry) < kSameEnergy_ry ? 0.0 : x_ry; }

/// Returns the grid u_j = ω₀ t/(1 − t), t = j/N, j = 0 … N−1.
inline std::vector<double> imaginary_grid(int n, double scale_ry) {
  std::vector<double> u(static_cast<std::size_t>(n));
  for (int j = 0; j < n; ++j) {
    const double t = static_cast<double>(j) / n;
    u[static_cast<std::size_t>(j)] = scale_ry * t / (1.0 - t);
  }
  return u;
}

/// Parabola of S(iu) on one segment of the imaginary axis, through three points.
struct Parabola {
  std::span<const double> u;
  std::size_t first = 0;  ///< the points are first, first + 1 and first + 2
  bool even = false;  ///< S₀ + (S₁ − S₀) u²/u₁² instead, through the first two points

  /// Adds the weights of the points to w, given the moments of a kernel over the segment.
  template <typename Scalar>
  void add_moments(Scalar m0, Scalar m1, Scalar m2, std::vector<Scalar>& w) const {
    if (even) {
      const Scalar share = m2 / (u[1] * u[1]);
      w[0] += (m0 - share) / kPi;
      w[1] += share / kPi;
      return;
    }
    for (std::size_t i = first; i < first + 3; ++i) {
      const double p = u[first + (i == first ? 1 : 0)], q = u[first + (i == first + 2 ? 1 : 2)];
      const double scale = (u[i] - p) * (u[i] - q);
      w[i] += (m2 - (p + q) * m1 + p * q * m0) / scale / kPi;
    }
  }
};
/// Calls visit(a, b, parabola) for every segment [a, b] of the grid.
template <typename Visit>
void for_each_parabola(std::span<const double> u, const Visit& visit) {
  for (std::size_t j = 0; j + 1 < u.size(); ++j)
    visit(u[j], u[j + 1], Parabola{u, j + 2 < u.size() ? j : j - 1, j == 0 && u[0] == 0.0});
}
/// Calls visit(j, start, end) for the segment around each point in which S is constant.
template <typename Visit>
void for_each_constant_segment(std::span<const double> u, const Visit& visit) {
  const std::size_t n = u.size();
  for (std::size_t j = 0; j < n; ++j)
    visit(j, j == 0 ? 0.0 : 0.5 * (u[j - 1] + u[j]),
          j + 1 < n ? 0.5 * (u[j] + u[j + 1]) : 0.5 * (3.0 * u[j] - u[j - 1]));
}

/// Returns (t − atan t)/t³, expanded where the difference would lose digits.
template <typename Scalar>
Scalar arc_rest(Scalar t) {
  const Scalar square = t * t;
  if (std::abs(t) > 0.05) return (t - std::atan(t)) / (t * square);
  return 1.0 / 3.0 - square * (0.2 - square * (1.0 / 7.0 - square * (1.0 / 9.0 - square / 11.0)));
}

/// Returns weights w_j of (1/π) ∫₀^∞ du S(iu) x/(x² + u²) ≈ Σ_j w_j S(iu_j) (docs/theory/gw.md 6.5)
/// [lebegue2003]. x = 0 is taken as its limit from above, where the integral is ½ S(0).
///
/// S(iu) is even, and so is the parabola of the first segment if u_0 = 0. The slope of the integral
/// at x = 0 is then finite. Beyond the last point S falls as 1/u² (quadratic rule) or is cut
/// (constant rule). A complex x, off the imaginary axis, gives Σ at complex energies.
template <typename Scalar>
std::vector<Scalar> contour_weights(std::span<const double> u, Scalar x_ry, ImaginaryRule rule) {
  Scalar x = x_ry;
  if constexpr (std::is_same_v<Scalar, double>) x = snapped(x_ry) == 0.0 ? 1e-12 : x_ry;
  const std::size_t n = u.size();
  std::vector<Scalar> w(n, Scalar{});
  const auto angle = [&](double at) { return std::atan(at / x); };
  if (rule == ImaginaryRule::kConstant) {
    for_each_constant_segment(u, [&](std::size_t j, double start, double end) {
      w[j] = (angle(end) - angle(start)) / kPi;
    });
    return w;
  }
  // Moments of x/(x²+u²) over [a, b]: 1 → Δatan, u → x/2 Δln(x²+u²), u² → x (b − a) − x² Δatan.
  for_each_parabola(u, [&](double a, double b, const Parabola& parabola) {
    const Scalar m0 = angle(b) - angle(a);
    const Scalar m1 = 0.5 * x * (std::log(x * x + b * b) - std::log(x * x + a * a));
    const Scalar m2 = x * (b - a) - x * x * m0;
    parabola.add_moments(m0, m1, m2, w);
  });
  // Tail S ≈ S_N (u_N/u)²: ∫_b^∞ x b²/(u² (x²+u²)) du = (t − atan t)/t² with t = x/b.
  const Scalar t = x / u[n - 1];
  w[n - 1] += t * arc_rest(t) / kPi;
  return w;
}

/// Returns the derivatives dw_j/dx of contour_weights(). At x = 0 it returns their common limit
/// from both sides, without the step of the integral there.
inline std::vector<double> contour_slopes(std::span<const double> u, double x_ry,
                                          ImaginaryRule rule) {
  const double x = snapped(x_ry) == 0.0 ? 1e-12 : x_ry, square = x * x;
  std::vector<double> w(u.size());
  const auto angle_slope = [&](double at) { return -at / (square + at * at); };
  if (rule == ImaginaryRule::kConstant) {
    for_each_constant_segment(u, [&](std::size_t j, double start, double end) {
      w[j] = (angle_slope(end) - angle_slope(start)) / kPi;
    });
    return w;
  }
  for_each_parabola(u, [&](double a, double b, const Parabola& parabola) {
    const double angle = std::atan(b / x) - std::atan(a / x), m0 = angle_slope(b) - angle_slope(a),
                 in = square + a * a, out = square + b * b;
    const double m1 = 0.5 * std::log(out / in) + square * (1.0 / out - 1.0 / in);
    parabola.add_moments(m0, m1, b - a - 2.0 * x * angle - square * m0, w);
  });
  // dT/dt of the tail T = (t − atan t)/t².
  const double t = x / u.back();
  w.back() += (1.0 / (1.0 + t * t) - 2.0 * arc_rest(t)) / u.back() / kPi;
  return w;
}

/// Returns f(x) = ∫₀^ω_N dω B(ω)/(x − ω + i0) for B given at points and linear between them. With B
/// = Im S/π it is Σ_c of an empty band on the real axis; for an occupied band Σ_c is −f(−x).
inline std::complex<double> spectral_integral(std::span<const double> omega,
                                              std::span<const double> b, double x) {
  std::complex<double> sum;
  for (std::size_t i = 0; i + 1 < omega.size(); ++i) {
    const double low = omega[i], high = omega[i + 1];
    const double slope = (b[i + 1] - b[i]) / (high - low);
    const double value_at_x = b[i] + slope * (x - low);
    // The logarithms of neighbouring segments cancel at their common point.
    const auto distance = [&](double end) { return std::max(std::abs(x - end), 1e-12); };
    sum += value_at_x * std::log(distance(low) / distance(high)) - slope * (high - low);
    if (x >= low && x < high) sum -= std::complex<double>(0.0, kPi * value_at_x);
  }
  return sum;
}

/// Evaluates Thiele's continued fraction through (z_j, f_j) at z [vidberg1977].
inline std::complex<double> continued(std::span<const std::complex<double>> z,
                                      std::span<const std::complex<double>> f,
                                      std::complex<double> at) {
  using C = std::complex<double>;
  const std::size_t n = z.size();
  std::vector<C> a(f.begin(), f.end());
  for (std::size_t k = 1; k < n; ++k)
    for (std::size_t j = k; j < n; ++j) a[j] = (a[k - 1] - a[j]) / ((z[j] - z[k - 1]) * a[j]);
  C tail{1.0, 0.0};
  for (std::size_t k = n - 1; k > 0; --k) tail = 1.0 + a[k] * (at - z[k - 1]) / tail;
  return a[0] / tail;
}

/// Returns the sign with which S(|x|) enters as a residue: −1 for an empty band at x ≥ 0, +1 for an
/// occupied one at x < 0, else 0.
inline double residue_sign(double x_ry, bool occupied) {
  const double x = snapped(x_ry);
  if (!occupied && x >= 0.0) return -1.0;
  if (occupied && x < 0.0) return 1.0;
  return 0.0;
}

}  // namespace quasi::gw
