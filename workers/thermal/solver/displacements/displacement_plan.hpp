#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workers/thermal/solver/displacements/displacement_options.hpp"
#include "workers/thermal/solver/displacements/supercell_group.hpp"

/// Begin here: workers/thermal/solver/displacements makes force constants by finite displacements.
/// supercell_group.hpp holds the symmetry, finite_differences.hpp the constants and
/// force_sources.hpp the forces.
namespace quasi::thermal {

/// Names sites of a supercell, one for each index of a force constant.
using Cluster = std::vector<int>;

/// Describes a supercell with some atoms moved.
struct DisplacedCell {
  struct Move {
    int site = 0;
    Vec3 by_angstrom{};
  };
  std::vector<Move> moves;  ///< ordered by site; empty for the undisplaced cell
};

/// The displaced supercells from whose forces the constants of a crystal follow
/// (docs/theory/thermal.md 15).
class DisplacementPlan {
 public:
  /// @throws InvalidInput naming the option, its value, the limit and the remedy
  DisplacementPlan(const PhonopyCell& primitive, const DisplacementOptions& options);

  const SupercellGroup& group() const { return group_; }
  const DisplacementOptions& options() const { return options_; }
  /// Returns the cells to compute. Number 0 is undisplaced, and no two are images of each other.
  const std::vector<DisplacedCell>& cells() const { return cells_; }
  /// Returns the supercell with the atoms of a cell moved.
  PhonopyCell displaced(std::size_t cell) const;

  /// Returns the clusters of one order whose first site lies in the origin cell.
  std::vector<Cluster> clusters(int order) const;

  /// Holds one image of a cluster under the group and the exchange of its indices.
  struct Orbit {
    Cluster representative;
    int operation = 0;
    std::vector<int> slot;  ///< representative[k] is the image of cluster[slot[k]]
  };
  Orbit orbit_of(const Cluster& cluster) const;

  /// A cell of the plan that is the image of wanted moves.
  struct Image {
    std::size_t cell = 0;
    int operation = 0;
    int anchor = 0;  ///< site that the operation and a translation bring to the origin cell
  };
  /// Returns the planned cell onto which the group maps these moves.
  Image find(const DisplacedCell& wanted) const;

  /// Calls visit(cell, sign) for the 2^(n−1) cells of a central difference along the Cartesian
  /// axes of the first n−1 sites of a cluster. The sign is the product of the signs of the moves.
  template <typename Visit>
  void for_each_difference(const Cluster& cluster, const std::vector<int>& axes,
                           const Visit& visit) const {
    const int moved = static_cast<int>(cluster.size()) - 1;
    for (unsigned signs = 0; signs < (1u << moved); ++signs)
      visit(moved_cell(cluster, axes, signs), sign_of(signs));
  }

 private:
  using Key = std::vector<std::array<std::int64_t, 4>>;
  std::pair<Key, Image> canonical(const DisplacedCell& wanted) const;
  DisplacedCell moved_cell(const Cluster& cluster, const std::vector<int>& axes,
                           unsigned signs) const;
  static double sign_of(unsigned signs);
  double cutoff(int order) const;
  void check_cutoff(int order) const;
  void add(const DisplacedCell& wanted);

  SupercellGroup group_;
  DisplacementOptions options_;
  std::vector<DisplacedCell> cells_;
  std::map<Key, std::size_t> number_;
};

/// Advances the digits of a number in base `base`, last digit fastest. Returns false after the
/// largest number, whose successor is zero.
bool advance_digits(std::vector<int>& digit, int base);

}  // namespace quasi::thermal
