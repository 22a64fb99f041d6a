#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "workers/gw/solver/perturbation/displaced_files/difference_of_files.hpp"
#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

/// Holds the displacement of one atom along one axis, and ∂V from the files of two calculations
/// in which the atom is displaced by +h and by −h (docs/theory/gw.md 14.11).
struct FileDisplacement {
  Displacement displacement;
  double step_bohr = 0.0;        ///< h
  std::filesystem::path folder;  ///< folder of the calculation with +h
  Supercell supercell;           ///< cell of both calculations, in units of the cell of WFN
  std::shared_ptr<const DifferenceOfFiles> difference;
  bool has_vxc = false;  ///< true if the folders have VXC

  /// Returns ∂V = [V(h) − V(−h)]/2h, Ry/Bohr, of the potential and the projectors. The atom
  /// of cell R moves with the factor e^{iq·R}. @pre q is a reciprocal vector of the supercell
  Perturbation potential_at(const Vec3& q) const;
  /// Returns ∂V_xc of the same displacement, Ry/Bohr. @pre has_vxc, and q as in potential_at()
  Perturbation vxc_at(const Vec3& q) const;
};

/// Begin here: reads the displaced crystals of a deck and makes the list of their displacements. A
/// crystal has the cell of `field` or a supercell of it (supercell.hpp). Its folder holds the files
/// VSC and VKB of BerkeleyGW. The file VXC is in all folders or in none. The list is ordered by
/// atoms, then by axes.
/// @param folders  two folders for each displacement, with +h and with −h
/// @param field    crystal at rest; it must outlive the list
/// @throws InvalidInput with file, value and remedy. It refuses missing and damaged files, crystals
/// that differ by more than one displaced atom, displacements that are not opposite, k-points that
/// are reduced by symmetry, and two pairs that displace one atom along one axis.
std::vector<FileDisplacement> file_displacements(const std::vector<DisplacedFolders>& folders,
                                                 const MeanField& field);

/// Checks that the list has every atom of the crystal along x, y and z, which phonon modes need.
/// @throws InvalidInput with the first one that is missing
void require_all_displacements(const std::vector<FileDisplacement>& list, const Crystal& crystal);

/// Checks that every wave vector is a reciprocal vector of every supercell. The supercell then
/// holds a whole number of its waves.
/// @param q  wave vectors, reduced
/// @throws InvalidInput with the wave vector, the folder and its supercell
void require_whole_waves(const std::vector<FileDisplacement>& list, const std::vector<Vec3>& q);

}  // namespace quasi::gw
