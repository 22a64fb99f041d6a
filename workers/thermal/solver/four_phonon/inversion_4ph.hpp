#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "workers/thermal/input/force_constants.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

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

/// Largest |Ψ − inverted Ψ| over the largest |Ψ|.
double inversion_residual(const Inversion& inversion, const SparseForceConstants& fourth_order);

/// Turns the eigenvectors of each degenerate set into ones with Θe = e that span the same.
/// @param subspace     [n_q][nb] first branch of the set
/// @param eigenvector  [n_q][nb][nb], changed
/// @return how far the worst set was from one that Θ maps on itself, 0 … 1: |Θe − its part within
/// the set|.
double turn_to_inversion(const QMesh& mesh, const Inversion& inversion,
                         const std::vector<std::int32_t>& subspace,
                         std::vector<std::complex<double>>& eigenvector);

}  // namespace quasi::thermal
