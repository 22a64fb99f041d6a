#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/thermal/solver/displacements/displacement_options.hpp"

namespace quasi::thermal {

/// Plans finite displacements of the crystal in a POSCAR (docs/theory/thermal.md 15). Writes
/// POSCAR, displacements.json and displacements.xyz into a directory, which is made if absent.
/// @return a report for people
/// @throws InvalidInput naming the option or the line of the file; StorageError
std::string displace(const std::filesystem::path& poscar, const DisplacementOptions& options,
                     const std::filesystem::path& directory);

/// Makes force constants from the forces on the cells of a plan. Writes CONTROL,
/// FORCE_CONSTANTS_2ND and, by the order of the plan, FORCE_CONSTANTS_3RD and FORCE_CONSTANTS_4TH
/// into a directory, which is made if absent. CONTROL has neither mesh nor temperatures.
/// @param plan    a directory that displace() wrote
/// @param forces  files that read_force_file() knows, with the frames in the order of the plan, or
///                the name of a built-in potential
/// @return a report for people
/// @throws InvalidInput naming the file, the frame and the limit; StorageError
std::string collect(const std::filesystem::path& plan, const std::vector<std::string>& forces,
                    const std::filesystem::path& directory);

}  // namespace quasi::thermal
