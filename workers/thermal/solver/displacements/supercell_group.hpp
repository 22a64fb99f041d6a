#pragma once

#include <vector>

#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// The sites of a supercell and the action of the space group on them. Sites are numbered as
/// repeat_cell does: atom slowest, first axis fastest.
class SupercellGroup {
 public:
  /// Operations that do not map the supercell's lattice onto itself are left out.
  /// @throws InvalidInput if a repeat is below 1 or spglib finds no group
  SupercellGroup(const PhonopyCell& primitive, const Index3& repeats, double symprec_angstrom);

  const PhonopyCell& supercell() const { return supercell_; }
  const Index3& repeats() const { return repeats_; }
  int n_sites() const { return supercell_.n_atoms(); }
  int n_atoms() const { return n_atoms_; }  ///< of the primitive cell
  int n_operations() const { return static_cast<int>(rotation_.size()); }

  /// Returns the site to which an operation maps a site.
  int image(int operation, int site) const { return image_[operation][site]; }
  /// Returns the rotation of Cartesian vectors of an operation.
  const Mat3& rotation(int operation) const { return rotation_[operation]; }

  int atom_of(int site) const { return site / n_cells(); }
  /// Returns the site of an atom in the origin cell.
  int at_origin(int atom) const { return atom * n_cells(); }
  /// Returns `site` after the translation that brings `anchor` to the origin cell.
  int relative_to(int site, int anchor) const;

  /// Lattice coordinates of the cell in which the image of a site nearest to an atom lies.
  const Index3& nearest_cell(int atom, int site) const { return nearest_cell_[atom][site]; }
  /// Returns the vector from an atom of the origin cell to the nearest image of a site, Å.
  const Vec3& nearest_vector(int atom, int site) const { return nearest_vector_[atom][site]; }
  /// Returns the length of the shortest vector of the supercell's lattice, Å.
  double shortest_period_angstrom() const { return shortest_period_; }

 private:
  int n_cells() const { return repeats_[0] * repeats_[1] * repeats_[2]; }
  int site_of(int atom, const Index3& cell) const;
  Index3 cell_of(int site) const;
  void find_operations(const PhonopyCell& primitive, double symprec_angstrom);
  void find_nearest_images(const PhonopyCell& primitive);

  PhonopyCell supercell_;
  Index3 repeats_;
  int n_atoms_ = 0;
  double shortest_period_ = 0.0;
  std::vector<Mat3> rotation_;
  std::vector<std::vector<int>> image_;            ///< [operation][site]
  std::vector<std::vector<Index3>> nearest_cell_;  ///< [atom][site]
  std::vector<std::vector<Vec3>> nearest_vector_;  ///< [atom][site]
};

}  // namespace quasi::thermal
