#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace quasi::gw {

/// Returns e + h²/(3(e + b)), a node moved by the excess of the second moment of its window.
inline double moved_node(double node, double width, double pole) {
  return node + width * width / (3.0 * (node + pole));
}

/// Windows of energy for stochastic pseudobands (docs/theory/gw.md 9.3; altman2024). Energies x are
/// distances from midgap, x > 0, in any one unit. The weight of a window is a cubic B-spline
/// B_k(x) whose knots grow by the factor 1 + F. The window function is g_k = √B_k, so that
///
///   Σ_k g_k(x)² = 1,   Σ_k g_k(x)² e_k = x   for first ≤ x ≤ last
///
/// with the node e_k, the mean of the three inner knots of the window.
class EnergyWindows {
 public:
  /// Makes the windows that cover [first, last]. @param ratio  F, the width of an interval over its
  /// lower end
  EnergyWindows(double first, double last, double ratio) {
    const auto intervals = static_cast<std::size_t>(
        std::max(1.0, std::ceil(std::log(last / first) / std::log1p(ratio))));
    for (std::size_t j = 0; j < intervals + 7; ++j)
      knots_.push_back(first * std::pow(1.0 + ratio, static_cast<double>(j) - 3.0));
  }

  std::size_t size() const { return knots_.size() - 4; }

  /// Returns g_k(x)² by the recursion of Cox and de Boor.
  double weight(std::size_t k, double x) const {
    const double* t = knots_.data() + k;
    std::array<double, 4> b{};
    for (std::size_t i = 0; i < 4; ++i) b[i] = t[i] <= x && x < t[i + 1] ? 1.0 : 0.0;
    for (std::size_t order = 2; order <= 4; ++order)
      for (std::size_t i = 0; i + order <= 4; ++i)
        b[i] = (x - t[i]) / (t[i + order - 1] - t[i]) * b[i] +
               (t[i + order] - x) / (t[i + order] - t[i + 1]) * b[i + 1];
    return b[0];
  }

  /// Returns e_k.
  double node(std::size_t k) const { return (knots_[k + 1] + knots_[k + 2] + knots_[k + 3]) / 3.0; }

  /// Returns h_k = (t_(k+4) − t_k)/4.
  double width(std::size_t k) const { return (knots_[k + 4] - knots_[k]) / 4.0; }

  /// Returns the energy that stands for window k, its node moved by the excess of the second
  /// moment: E_k = e_k + h_k²/(3(e_k + b)), h_k = (t_(k+4) − t_k)/4. Then Σ_k g_k² /(E_k + b) is
  /// 1/(x + b) to second order in h. @param pole  b
  double energy(std::size_t k, double pole) const { return moved_node(node(k), width(k), pole); }

 private:
  std::vector<double> knots_;
};

}  // namespace quasi::gw
