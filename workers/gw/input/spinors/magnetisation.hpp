#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Returns the number of components in a record of spinors: 1, 2 or 4. Files hold the scalar part
/// alone, or the magnetic parts too. @param component_bytes  bytes of one component
/// @throws InvalidInput that begins with `what`
std::size_t components_in(std::int64_t record_bytes, std::int64_t component_bytes,
                          const std::string& what);

/// Keeps the first component of a density or potential of spinors, which acts on both components
/// of a state alike. The others are the magnetisation, or the magnetic field of V_xc.
/// @param components  one, two or four lists on the master list of plane waves
/// @throws InvalidInput if one of the others exceeds 1e-8 of the largest value: the mean field is
///         non-collinear magnetism
std::vector<std::vector<Cplx>> without_magnetisation(std::vector<std::vector<Cplx>> components,
                                                     const std::string& file);

}  // namespace quasi::gw
