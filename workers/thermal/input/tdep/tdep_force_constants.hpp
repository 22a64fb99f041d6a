#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Dielectric tensor and effective charges of a TDEP file.
struct TdepCharges {
  Mat3 epsilon = kIdentity;
  std::vector<Mat3> born;  ///< [atom][field][displacement], e
};

/// Second-order constants of TDEP, and the charges whose dipoles they do not contain.
struct TdepSecondOrder {
  SecondOrder constants;
  std::optional<TdepCharges> charges;  ///< nothing for crystals that are not polar
};

/// Reads outfile.forceconstant: pairs in eV/Å² (docs/theory/thermal.md 1.8).
/// @param unit  (rad/ps)² amu in eV/Å²
/// @throws InvalidInput naming file, line and what was expected: for another number of atoms, cells
///         that are no integers, pairs that are listed twice, and the corrections 1 and 2 of old
///         versions of TDEP.
TdepSecondOrder read_tdep_second_order(const std::filesystem::path& file, int n_atoms, double unit);

/// Reads outfile.forceconstant_thirdorder or …_fourthorder, eV/Å^order. @throws InvalidInput as
/// read_tdep_second_order.
SparseForceConstants read_tdep_anharmonic(const std::filesystem::path& file, int order,
                                          int n_atoms);

/// Reads infile.isotopes, "fraction mass" of every isotope of every atom, and replaces masses and
/// isotope factors. @throws InvalidInput for fractions that do not add up to 1 within 1e-3.
void read_tdep_isotopes(const std::filesystem::path& file, Crystal& crystal);

/// Reads infile.lotosplitting: ε, then the charges of every atom.
TdepCharges read_tdep_charges(const std::filesystem::path& file, int n_atoms);

/// Reads the temperature of infile.meta in K.
double read_tdep_temperature_k(const std::filesystem::path& file);

}  // namespace quasi::thermal
