#pragma once

#include <string>

namespace quasi::gw {

/// Shape in which the Coulomb interaction is truncated (docs/theory/gw.md 5).
enum class Truncation { kNone, kSlab, kWire, kBox, kSphere };

/// Rule for the row and column of W that carry the average of the wings at q ≠ 0.
enum class WingRule {
  kShortest,     ///< those of the shortest q+G; independent of the order of the q-list
  kListedPoint,  ///< those of G = 0 of the irreducible q, as in BerkeleyGW
};

/// Sum over the q-grid near q → 0 in a crystal that is periodic in three dimensions.
enum class ZoneSum {
  kPoints,  ///< W at the points of the grid; q = 0 has the weight of a punctured sum
  kCells,   ///< v averaged over the mini-zone of every point
};

struct CoulombOptions {
  Truncation truncation = Truncation::kNone;
  double sphere_radius_bohr = 0.0;
  /// Largest share of the charge outside half the cell along a truncated axis.
  double max_charge_outside = 0.01;
  WingRule wing_rule = WingRule::kShortest;
  /// Without effect where the interaction is truncated, averages are stored, or wings follow
  /// WingRule::kListedPoint, which has averages of its own.
  ZoneSum zone_sum = ZoneSum::kCells;
  /// Lengths of q inside the mini-zone of a slab at which the head of ε⁻¹ is calculated for the
  /// average of W; 0: none.
  int subsampling = 0;
  /// File of stored averages v̄(q+G). If it is empty, the averages are calculated.
  std::string average_file;
};

}  // namespace quasi::gw
