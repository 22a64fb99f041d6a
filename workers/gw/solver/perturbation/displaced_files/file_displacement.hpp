#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "workers/gw/solver/perturbation/displaced_files/difference_of_files.hpp"
#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

/// Describes one displacement of an atom by calculations with files (docs/theory/gw.md 14.11).
struct FileDisplacement {
  Displacement displacement;
  double step_bohr = 0.0;        ///< h
  std::filesystem::path folder;  ///< that of +h
  Supercell supercell;           ///< of the displaced calculations
  std::shared_ptr<const DifferenceOfFiles> difference;
  bool has_vxc = false;  ///< true if the folders have VXC

  /// Returns ∂V = [V(h) − V(−h)]/2h of V_scf and the projectors with a wave vector.
  /// @pre q is a reciprocal vector of the supercell
  Perturbation potential_at(const Vec3& q) const;
  /// Returns ∂V_xc with a wave vector. @pre has_vxc, and q as above
  Perturbation vxc_at(const Vec3& q) const;
};

/// Begin here: reads the displaced crystals of a deck and returns ∂V of each displacement as the
/// difference of +h and −h over 2h. A crystal is the cell of `field` or a supercell of it
/// (supercell.hpp). Its folder holds VSC and VKB. The file VXC may be in all folders or in none.
/// The list is in the order of atoms, then of axes. It refers to `field`, which must outlive it.
/// @throws InvalidInput if a file is missing or damaged, crystals differ by more than one displaced
/// atom, the two displacements are not opposite, the list of k-points is reduced by symmetry, or
/// two pairs displace one atom along one axis. The message gives file, value and remedy.
std::vector<FileDisplacement> file_displacements(const std::vector<DisplacedFolders>& folders,
                                                 const MeanField& field);

/// Checks that displacements hold every atom along x, y and z, which phonon modes need.
/// @throws InvalidInput with the first one that is missing
void require_all_displacements(const std::vector<FileDisplacement>& list, const Crystal& crystal);

/// Checks that the supercell of every displacement holds whole waves of every wave vector.
/// @throws InvalidInput with the wave vector, the folder and its supercell
void require_whole_waves(const std::vector<FileDisplacement>& list, const std::vector<Vec3>& q);

}  // namespace quasi::gw
