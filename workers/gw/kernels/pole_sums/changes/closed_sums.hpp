#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/physics/pole_response.hpp"

namespace quasi::gw {

/// Describes a box around 0 that holds all differences D = G − G' of the plane waves of a model.
struct DifferenceBox {
  std::vector<IVec3> waves;              ///< G, [n]
  std::array<std::int32_t, 3> extent{};  ///< bound of |D| along each axis; edges are 2 extent + 1
  /// Makes the box of a list of plane waves G.
  explicit DifferenceBox(std::vector<IVec3> list) : waves(std::move(list)) {
    for (const IVec3& g : waves)
      for (std::size_t i = 0; i < 3; ++i) extent[i] = std::max(extent[i], 2 * std::abs(g[i]));
  }
  /// Returns the number of D in the box.
  std::int64_t size() const {
    std::int64_t product = 1;
    for (const std::int32_t e : extent) product *= 2 * e + 1;
    return product;
  }
  /// Returns the position of D in the box, or −1 if D lies outside.
  std::int64_t position(const IVec3& d) const {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (std::abs(d[i]) > extent[i]) return -1;
      at = at * (2 * extent[i] + 1) + d[i] + extent[i];
    }
    return at;
  }
};

/// Returns an element of F v̄ of an empty band at x = E − E_n (docs/theory/gw.md 6.2). It has
/// the unit of B, which is Bohr³ Ry.
/// @param own  B and τ of the element
QUASI_HD inline Complex<double> empty_band_element(double x_ry, const PoleTerms& own) {
  return smooth_pole_value(x_ry, own.tau_per_ry, -1.0) * own.strength;
}

/// Returns the first order of F v̄ of an empty band at x in a change of its element, Bohr³ Ry
/// (docs/theory/gw.md 9.3).
/// @param own  B and τ of the element
/// @param change  δB and δτ
QUASI_HD inline Complex<double> change_of_empty_band(double x_ry, PoleTerms own, PoleTerms change) {
  const PoleResponse f =
      pole_response(smooth_pole_value(x_ry, own.tau_per_ry, -1.0), x_ry, own.tau_per_ry);
  return f.value * change.strength +
         (f.by_tau * change.tau_per_ry) * (own.strength + change.strength);
}

}  // namespace quasi::gw
