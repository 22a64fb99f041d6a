#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workers/thermal/model/crystal.hpp"

namespace quasi::thermal {

/// A centre of inversion, which maps atom κ of cell R to `partner[κ]` of cell shift[κ] − R.
///
/// With complex conjugation it maps a wave on one of equal q: (Θe)(κ̄) = e(κ)* e^{−iq·L_κ}.
/// Eigenvectors with Θe = e make every matrix element real. Each term Σ_βγ at one pair of sites is
/// then the conjugate of the term at the inverted pair. The real parts of half of the pairs,
/// counted twice, are therefore the whole sum.
struct Inversion {
  std::vector<std::int32_t> partner;  ///< [atom] κ̄
  std::vector<Index3> shift;          ///< [atom] L_κ
};

/// Finds a centre of inversion. @param tolerance_nm  largest distance of an atom from the image of
/// another @return nothing if the crystal has no centre.
std::optional<Inversion> find_inversion(const Crystal& crystal, double tolerance_nm);

}  // namespace quasi::thermal
