#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workers/thermal/model/crystal.hpp"

namespace quasi::thermal {

/// A centre of inversion: the atom κ of cell R goes to `partner[κ]` of cell shift[κ] − R.
///
/// With complex conjugation it maps a wave on one of the same q: (Θe)(κ̄) = e(κ)* e^{−iq·L_κ}.
/// Eigenvectors with Θe = e make every matrix element real, and each term Σ_βγ of it at one pair of
/// sites the conjugate of the term at the inverted pair: half of the pairs, and their real parts,
/// are the whole sum.
struct Inversion {
  std::vector<std::int32_t> partner;  ///< [atom] κ̄
  std::vector<Index3> shift;          ///< [atom] L_κ
};

/// @param tolerance_nm  how far an atom may be from another's image
/// @return nothing where the crystal has no centre.
std::optional<Inversion> find_inversion(const Crystal& crystal, double tolerance_nm);

}  // namespace quasi::thermal
