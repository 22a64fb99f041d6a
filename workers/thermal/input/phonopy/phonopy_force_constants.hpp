#pragma once

#include <filesystem>
#include <string>

#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// The cells that a dataset of force constants of phonopy or phono3py refers to.
struct PhonopySupercell {
  const PhonopyCell& primitive;
  const PhonopyCell& supercell;
  std::string source;  ///< name of the file that the cells come from, for messages
};

/// Reads second-order constants, [n_p or n_s][n_s][3][3] in eV/Å² (docs/theory/thermal.md 1.6).
/// @param unit  (rad/ps)² amu in eV/Å²
/// @throws InvalidInput naming file, dataset and what was found: for shapes that do not fit the
///         cells, for numbers that are not finite, and where the supercell is not made of primitive
///         cells.
SecondOrder read_fc2(const std::filesystem::path& file, const PhonopySupercell& cells, double unit);

/// Reads third-order constants, [n_p or n_s][n_s][n_s][3][3][3] in eV/Å³, as blocks shared among
/// the nearest images of the second and third atom. @throws InvalidInput as read_fc2.
SparseForceConstants read_fc3(const std::filesystem::path& file, const PhonopySupercell& cells);

}  // namespace quasi::thermal
