#pragma once

#include <cstdlib>
#include <optional>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Relates a supercell to the cell that it repeats (docs/theory/gw.md 14.11). Its lattice vectors
/// are A'_i = Σ_j S_ij A_j with a matrix S of whole numbers. A plane wave with the reduced
/// coordinates K in the cell has the reduced coordinates S·K in the supercell.
class Supercell {
 public:
  /// @param repeats  S, with a determinant other than 0
  explicit Supercell(const IMat3& repeats) : repeats_(repeats) {}

  /// Finds S from the lattice vectors of two crystals.
  /// @return nothing if `large` is no supercell of `cell`
  static std::optional<Supercell> of(const Crystal& cell, const Crystal& large);

  const IMat3& repeats() const { return repeats_; }
  /// Returns the number of cells in the supercell.
  int n_cells() const { return std::abs(determinant(repeats_)); }
  bool is_the_cell() const { return repeats_ == IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}; }

  /// Returns S·k, the coordinates in the supercell of a wave with the coordinates k in the cell.
  Vec3 coordinates_of(const Vec3& k) const;
  IVec3 coordinates_of(const IVec3& g) const { return multiply(repeats_, g); }
  /// Returns S·q if all its components are whole, so that q is a reciprocal vector of the
  /// supercell. Else the result is empty.
  std::optional<IVec3> vector_of(const Vec3& q) const;
  /// Returns G with S·G = g if all components of G are whole. Else the result is empty.
  std::optional<IVec3> cell_vector_of(const IVec3& g) const;
  /// Moves a cell by lattice vectors of the supercell to one of n_cells() chosen cells. Two cells
  /// have one result if they differ by a lattice vector of the supercell.
  /// @param n  position of the cell, in units of the lattice vectors of the cell
  IVec3 folded_cell(const IVec3& n) const;

 private:
  IMat3 repeats_{};
};

/// Converts a Cartesian position in Bohr to units of the lattice vectors.
Vec3 reduced_position(const Crystal& crystal, const Vec3& position_bohr);

/// Converts a position in units of the lattice vectors to Cartesian coordinates in Bohr.
Vec3 cartesian_position(const Crystal& crystal, const Vec3& reduced);

}  // namespace quasi::gw
