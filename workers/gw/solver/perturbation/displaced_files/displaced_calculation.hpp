#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/displaced_files/supercell.hpp"

namespace quasi::gw {

/// Holds the data of the files of one displaced crystal.
struct DisplacedCalculation {
  std::filesystem::path folder;
  PlaneWaveField potential;           ///< VSC, Ry
  std::optional<PlaneWaveField> vxc;  ///< VXC, Ry; absent if the job has no V_xc
  Projectors projectors;              ///< VKB
};

/// Holds the displaced atom of a calculation and its displacement from the crystal at rest.
struct Shift {
  std::size_t atom = 0;    ///< position of the atom in the list of WFN, from 0
  std::size_t listed = 0;  ///< position of the atom in the list of the calculation, from 0
  IVec3 cell{};            ///< cell of the atom, in units of the lattice vectors of WFN
  Vec3 by_bohr{};          ///< displacement, Cartesian
};

/// Throws InvalidInput with perturbation.displaced, the file or folder, and a sentence about it.
/// @param sentence  text after the path, such as "is no folder; name one"
[[noreturn]] void refuse_displaced(const std::filesystem::path& path, const std::string& sentence);

/// Formats a vector with six digits after each decimal point.
std::string shown_vector(const Vec3& v);

/// Formats the lattice vectors of a supercell in units of those of WFN.
std::string shown_repeats(const Supercell& supercell);

/// Reads the files VSC, VKB and, if wanted, VXC of BerkeleyGW in a folder.
/// @throws InvalidInput if the folder or a file is missing or damaged
DisplacedCalculation read_calculation(const std::filesystem::path& folder, bool with_vxc);

/// Returns the relation of the cell of a calculation to the cell of WFN.
/// @param field  crystal at rest, with the cell of WFN
/// @throws InvalidInput if it is no supercell of that cell
Supercell supercell_of(const MeanField& field, const DisplacedCalculation& from);

/// Finds the displaced atom of a calculation. It also checks that all other atoms repeat the
/// crystal at rest, and that the files of the calculation agree.
/// @throws InvalidInput with the file, the value and a remedy
Shift shift_of(const MeanField& field, const Supercell& supercell,
               const DisplacedCalculation& from);

}  // namespace quasi::gw
