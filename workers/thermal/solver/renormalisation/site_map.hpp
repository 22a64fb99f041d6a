#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/symmetry.hpp"

namespace quasi::thermal {

/// Sites under one operation {W|t} of the space group: W r_κ + t = r_κ̃ + L_κ.
struct SiteMap {
  std::vector<int> image;     ///< [atom] κ̃
  std::vector<Index3> shift;  ///< [atom] L_κ
};

/// Finds a translation that completes a rotation to an operation of the space group. @param
/// tolerance_nm  largest distance of an atom from the image of another
/// @return nothing if no translation does
std::optional<SiteMap> find_site_map(const Crystal& crystal, const IntMat3& rotation,
                                     double tolerance_nm);

/// Maps a matrix of waves, [3κ+α][3κ'+β] with the phases of lattice vectors, from a point to its
/// images under the operations of a group:
///   D_κ̃κ̃'(q̃) = e^{iq̃·(L_κ'−L_κ)} R D_κκ'(q) Rᵀ, with D* in place of D under time reversal.
class WaveMatrixImages {
 public:
  /// @throws InvalidInput naming `symprec` if an operation moves an atom to no other
  WaveMatrixImages(const Crystal& crystal, const Symmetry& symmetry, double tolerance_nm);
  /// Returns the matrix at `point` from that at the irreducible point of its star.
  std::vector<std::complex<double>> at(std::int64_t point,
                                       const std::complex<double>* irreducible) const;

 private:
  struct Image {
    SiteMap sites;
    bool reversed = false;  ///< the operation includes time reversal
  };
  const Symmetry& symmetry_;
  int n_atoms_;
  std::vector<Image> image_;  ///< [operation]
};

}  // namespace quasi::thermal
