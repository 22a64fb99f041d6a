#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Plane waves G with |q+G|² below a cut-off (docs/theory/gw.md 3), sorted by |q+G|², then |G|²,
/// then (G1, G2, G3). Lengths are compared after rounding to 1e-8 Ry, so that the order does not
/// depend on rounding errors.
struct GSphere {
  Vec3 q{};
  std::vector<IVec3> g;
  std::vector<double> kinetic_ry;  ///< |q+G|²

  std::int64_t size() const { return static_cast<std::int64_t>(g.size()); }
};

/// Makes the sphere of a cut-off. @param bdot  reciprocal metric, Bohr⁻²
inline GSphere make_g_sphere(const Mat3& bdot, const Vec3& q, double cutoff_ry) {
  // |x_i| ≤ √(cutoff · (B⁻¹)_ii) is the extent of an ellipsoid along its axes.
  const Mat3& b = bdot;
  const double det = b[0][0] * (b[1][1] * b[2][2] - b[1][2] * b[2][1]) -
                     b[0][1] * (b[1][0] * b[2][2] - b[1][2] * b[2][0]) +
                     b[0][2] * (b[1][0] * b[2][1] - b[1][1] * b[2][0]);
  IVec3 low{}, high{};
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    const double inverse_ii = (b[j][j] * b[k][k] - b[j][k] * b[k][j]) / det;
    const double extent = std::sqrt(std::max(0.0, cutoff_ry * inverse_ii));
    low[i] = static_cast<int>(std::floor(-extent - q[i]));
    high[i] = static_cast<int>(std::ceil(extent - q[i]));
  }
  struct Entry {
    std::int64_t shifted, plain;
    IVec3 g;
    double kinetic;
  };
  std::vector<Entry> entries;
  for (int i = low[0]; i <= high[0]; ++i)
    for (int j = low[1]; j <= high[1]; ++j)
      for (int k = low[2]; k <= high[2]; ++k) {
        const IVec3 g{i, j, k};
        const Vec3 at = q + to_real(g);
        const double kinetic = metric_dot(b, at, at);
        if (kinetic >= cutoff_ry) continue;
        entries.push_back({std::llround(kinetic * 1e8),
                           std::llround(metric_dot(b, to_real(g), to_real(g)) * 1e8), g, kinetic});
      }
  std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
    if (x.shifted != y.shifted) return x.shifted < y.shifted;
    if (x.plain != y.plain) return x.plain < y.plain;
    return x.g < y.g;
  });
  GSphere sphere{.q = q, .g = {}, .kinetic_ry = {}};
  for (const Entry& entry : entries) {
    sphere.g.push_back(entry.g);
    sphere.kinetic_ry.push_back(entry.kinetic);
  }
  return sphere;
}

/// Maps G to its position in a list, or to −1 if the list lacks it. It uses a dense box, because
/// lists are unsorted.
class GIndex {
 public:
  explicit GIndex(const std::vector<IVec3>& list) {
    for (const IVec3& g : list)
      for (int i = 0; i < 3; ++i) extent_[i] = std::max(extent_[i], std::abs(g[i]));
    for (int i = 0; i < 3; ++i) edge_[i] = 2 * extent_[i] + 1;
    at_.assign(static_cast<std::size_t>(edge_[0]) * static_cast<std::size_t>(edge_[1]) *
                   static_cast<std::size_t>(edge_[2]),
               -1);
    for (std::size_t n = 0; n < list.size(); ++n)
      at_[offset(list[n])] = static_cast<std::int32_t>(n);
  }
  /// Returns the position of G, or −1.
  std::int32_t find(const IVec3& g) const {
    for (int i = 0; i < 3; ++i)
      if (std::abs(g[i]) > extent_[i]) return -1;
    return at_[offset(g)];
  }

 private:
  std::size_t offset(const IVec3& g) const {
    return (static_cast<std::size_t>(g[0] + extent_[0]) * static_cast<std::size_t>(edge_[1]) +
            static_cast<std::size_t>(g[1] + extent_[1])) *
               static_cast<std::size_t>(edge_[2]) +
           static_cast<std::size_t>(g[2] + extent_[2]);
  }
  IVec3 extent_{};
  IVec3 edge_{};
  std::vector<std::int32_t> at_;
};

/// Returns the smallest 2ᵃ3ᵇ5ᶜ7ᵈ that is ≥ n.
inline int good_fft_size(int n) {
  for (int size = std::max(1, n);; ++size) {
    int rest = size;
    for (const int p : {2, 3, 5, 7})
      while (rest % p == 0) rest /= p;
    if (rest == 1) return size;
  }
}

/// Returns the position of G in an FFT box, row-major with the first axis slowest. Negative
/// frequencies wrap around.
inline std::int32_t box_position(const IVec3& g, const std::array<int, 3>& box) {
  std::array<int, 3> p{};
  for (int i = 0; i < 3; ++i) p[i] = ((g[i] % box[i]) + box[i]) % box[i];
  return (p[0] * box[1] + p[1]) * box[2] + p[2];
}

/// Returns the largest |component| of a list along each axis.
inline IVec3 component_extent(const std::vector<IVec3>& list) {
  IVec3 extent{};
  for (const IVec3& g : list)
    for (int i = 0; i < 3; ++i) extent[i] = std::max(extent[i], std::abs(g[i]));
  return extent;
}

/// Returns the smallest box of good sizes for products of waves within ±a and ±b that are kept
/// within ±kept. Products do not wrap around onto the kept plane waves: n ≥ a + b + kept + 1.
inline std::array<int, 3> product_box(const IVec3& a, const IVec3& b, const IVec3& kept) {
  std::array<int, 3> box{};
  for (int i = 0; i < 3; ++i) box[i] = good_fft_size(a[i] + b[i] + kept[i] + 1);
  return box;
}

}  // namespace quasi::gw
