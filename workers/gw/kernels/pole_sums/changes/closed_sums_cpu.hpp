#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Returns F v̄ of an empty band at x = E − E_n, Bohr³ Ry, [n_g][n_g] (docs/theory/gw.md 9.4).
UnsetVector<Cplx> empty_band_matrix(const PlasmonPoleView& own, double x_ry);

/// Refers to some rows of a plasmon-pole model in host memory.
struct StoredPoleRows {
  const Cplx* strength = nullptr;   ///< A, [rows][stride]
  const double* pole_ry = nullptr;  ///< ω̃, [rows][stride]
  std::int64_t n = 0;               ///< edge of the model
  std::int64_t first_row = 0;       ///< row G that the arrays begin with
  std::int64_t stride = 0;          ///< columns of the arrays
  bool hermitian = false;           ///< true if A_GG' = A*_G'G and ω̃ is symmetric
  /// Returns B = A/ω̃ and τ = 1/ω̃ of the element in row g and column h of the model.
  PoleTerms terms(std::int64_t g, std::int64_t h) const {
    const std::int64_t at = (g - first_row) * stride + h;
    return pole_terms({strength[at].real(), strength[at].imag()}, pole_ry[at]);
  }
};

/// Returns w(D) = Σ_{G−G'=D} of all D of the box in host memory (docs/theory/gw.md 9.3, 9.4). It
/// is LoadedPoleChanges::sums_by_difference() of a change, or LoadedPoleModel::sums_by_difference()
/// of the model itself.
/// @param change  change of the poles; null for the sums of the model itself
/// @param rows  rows G that are summed; a row of a Hermitian model counts for its column, too
std::vector<Cplx> sums_by_difference_cpu(const StoredPoleRows& own, const PoleChange* change,
                                         const ElementRows& rows, double x_ry,
                                         const DifferenceBox& box);

}  // namespace quasi::gw
