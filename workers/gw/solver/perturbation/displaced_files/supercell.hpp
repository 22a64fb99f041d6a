#pragma once

#include <cstdlib>
#include <optional>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Relates a supercell to the cell that it repeats. Its lattice vectors are A'_i = Σ_j S_ij A_j,
/// with whole numbers S. A wave with the reduced coordinates K in the cell has S·K in the
/// supercell.
class Supercell {
 public:
  /// @param repeats  S, with a determinant other than 0
  explicit Supercell(const IMat3& repeats) : repeats_(repeats) {}

  /// Compares two lattices. @return nothing if `large` is no supercell of `cell`
  static std::optional<Supercell> of(const Crystal& cell, const Crystal& large);

  const IMat3& repeats() const { return repeats_; }
  /// Returns the number of cells in the supercell.
  int n_cells() const { return std::abs(determinant(repeats_)); }
  bool is_the_cell() const { return repeats_ == IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}; }

  /// Returns S·K, the coordinates in the supercell of a wave of the cell.
  Vec3 coordinates_of(const Vec3& k) const;
  IVec3 coordinates_of(const IVec3& g) const { return multiply(repeats_, g); }
  /// Returns S·q if it is a reciprocal vector of the supercell.
  std::optional<IVec3> vector_of(const Vec3& q) const;
  /// Returns G with S·G = `g` if G is a reciprocal vector of the cell.
  std::optional<IVec3> cell_vector_of(const IVec3& g) const;
  /// Returns the cell n, in lattice vectors, moved by lattice vectors of the supercell to one of
  /// its n_cells() cells. Two cells have one result if the supercell repeats one as the other.
  IVec3 folded_cell(const IVec3& n) const;

 private:
  IMat3 repeats_{};
};

/// Returns Cartesian coordinates in Bohr as coordinates in units of the lattice vectors.
Vec3 reduced_position(const Crystal& crystal, const Vec3& position_bohr);

/// Returns a position in units of the lattice vectors as Cartesian coordinates in Bohr.
Vec3 cartesian_position(const Crystal& crystal, const Vec3& reduced);

}  // namespace quasi::gw
