#pragma once

#include <vector>

#include "workers/gw/solver/perturbation/displacement_elements.hpp"

namespace quasi::gw {

/// Describes one displacement of an atom by calculations with files (docs/theory/gw.md 14.11).
struct FileDisplacement {
  Displacement displacement;
  double step_bohr = 0.0;     ///< h
  Perturbation perturbation;  ///< ∂V = [V(h) − V(−h)]/2h of V_scf and the projectors
  PotentialElements vxc;      ///< ∂V_xc(G), Ry/Bohr
};

/// Begin here: reads VSC, VKB and VXC of displaced crystals and forms central differences. The
/// results refer to the states of `field`, which must outlive them. They are in the order of atoms,
/// then of axes.
/// @throws InvalidInput if a file is missing or damaged, crystals differ by more than one displaced
/// atom, the two displacements are not opposite, the list of k-points is reduced by symmetry, or
/// two pairs displace one atom along one axis. The message gives file, value and remedy.
std::vector<FileDisplacement> file_displacements(const std::vector<DisplacedFolders>& folders,
                                                 const MeanField& field);

/// Checks that displacements hold every atom along x, y and z, which phonon modes need.
/// @throws InvalidInput with the first one that is missing
void require_all_displacements(const std::vector<FileDisplacement>& list, const Crystal& crystal);

}  // namespace quasi::gw
