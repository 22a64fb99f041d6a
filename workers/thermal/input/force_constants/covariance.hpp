#pragma once

#include <filesystem>

#include "workers/thermal/input/force_constants/constants_covariance.hpp"
#include "workers/thermal/model/force_constants.hpp"

namespace quasi::thermal {

/// Reads the covariance of third-order constants from HDF5 (docs/reference/thermal.md):
/// `/covariance` [n][n], and for m elements of the map from parameters to constants
/// `/basis/parameter` [m] from zero, `/basis/atom` [m][3] from zero, `/basis/cell` [m][2][3],
/// `/basis/component` [m][3] from zero and `/basis/value` [m] in eV/Å³ per unit of the parameter.
/// @param constants  third order that the tuples of the file belong to
/// @throws InvalidInput naming file, dataset and value: for shapes that do not belong together,
///         numbers that are not finite, a covariance that is not symmetric, a tuple that the
///         constants do not have, and indices out of range.
ConstantsCovariance read_covariance(const std::filesystem::path& file,
                                    const SparseForceConstants& constants);

}  // namespace quasi::thermal
