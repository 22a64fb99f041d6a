#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/displaced_files/supercell.hpp"

namespace quasi::gw {

/// Holds the files of one displaced crystal.
struct DisplacedCalculation {
  std::filesystem::path folder;
  PlaneWaveField potential;
  std::optional<PlaneWaveField> vxc;  ///< absent if the job has no V_xc
  Projectors projectors;
};

/// Holds the displaced atom of a calculation and its displacement from the crystal at rest.
struct Shift {
  std::size_t atom = 0;    ///< position in the list of WFN
  std::size_t listed = 0;  ///< position in the list of the calculation
  IVec3 cell{};            ///< cell of the atom, in units of the lattice vectors of WFN
  Vec3 by_bohr{};
};

/// Ends the job with a sentence about a file or folder of perturbation.displaced.
[[noreturn]] void refuse_displaced(const std::filesystem::path& path, const std::string& sentence);

/// Formats a vector with six digits after each point.
std::string shown_vector(const Vec3& v);

/// Formats the lattice vectors of a supercell in units of those of WFN.
std::string shown_repeats(const Supercell& supercell);

/// Reads VSC, VKB and, if wanted, VXC of a folder.
/// @throws InvalidInput if the folder or a file is missing or damaged
DisplacedCalculation read_calculation(const std::filesystem::path& folder, bool with_vxc);

/// Returns how often the crystal of a calculation repeats the cell of WFN.
/// @throws InvalidInput if it is no supercell of that cell
Supercell supercell_of(const MeanField& field, const DisplacedCalculation& from);

/// Finds the displaced atom of a calculation, and checks that all else repeats the crystal at rest
/// and that its files agree.
/// @throws InvalidInput with the file, the value and a remedy
Shift shift_of(const MeanField& field, const Supercell& supercell,
               const DisplacedCalculation& from);

}  // namespace quasi::gw
