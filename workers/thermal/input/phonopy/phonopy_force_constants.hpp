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
  PhonopyUnits units;  ///< of datasets that state none themselves
};

/// The atom of a triple or quartet from which nearest images of the supercell atoms are taken.
enum class TripletCentres {
  kMean,   ///< the mean over all atoms as the centre, as phono3py has it since version 3
  kFirst,  ///< the first atom
};

/// Reads second-order constants, [n_p or n_s][n_s][3][3] (docs/theory/thermal.md 1.6), in the unit
/// that the dataset `physical_unit` or the cells state. A file without the ending .hdf5 is the text
/// FORCE_CONSTANTS of phonopy.
/// @param unit  (rad/ps)² amu in eV/Å²
/// @throws InvalidInput naming file, dataset and what was found: for shapes that do not fit the
///         cells, for numbers that are not finite, and where the supercell is not made of primitive
///         cells.
SecondOrder read_fc2(const std::filesystem::path& file, const PhonopySupercell& cells, double unit);

/// Reads third-order constants, [n_p or n_s][n_s][n_s][3][3][3], as blocks in eV/Å³ that are shared
/// among nearest images. @throws InvalidInput as read_fc2.
SparseForceConstants read_fc3(const std::filesystem::path& file, const PhonopySupercell& cells,
                              TripletCentres centres);

/// Reads fourth-order constants, [n_p or n_s][n_s][n_s][n_s][3][3][3][3], as blocks in eV/Å⁴ that
/// are shared among nearest images, from one atom of the quartet or from all four.
/// @throws InvalidInput as read_fc2.
SparseForceConstants read_fc4(const std::filesystem::path& file, const PhonopySupercell& cells,
                              TripletCentres centres);

}  // namespace quasi::thermal
