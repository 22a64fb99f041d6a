#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/changes/closed_sums.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace quasi::gw {

/// Returns F v̄ of an empty band at x = E − E_n, Bohr³ Ry, [n_g][n_g] (docs/theory/gw.md 9.4).
UnsetVector<Cplx> empty_band_matrix(const PlasmonPoleView& own, double x_ry);

/// Describes rows of a pole model in host memory, in arrays of `stride` columns.
struct StoredPoleRows {
  const Cplx* strength = nullptr;
  const double* pole_ry = nullptr;
  std::int64_t n = 0;          ///< edge of the model
  std::int64_t first_row = 0;  ///< row G that the arrays begin with
  std::int64_t stride = 0;
  bool hermitian = false;
  /// Returns B and τ of an element.
  PoleTerms terms(std::int64_t g, std::int64_t h) const {
    const std::int64_t at = (g - first_row) * stride + h;
    return pole_terms({strength[at].real(), strength[at].imag()}, pole_ry[at]);
  }
};

/// Returns w(D) of all D of the box in host memory (docs/theory/gw.md 9.3, 9.4). It belongs to a
/// change (LoadedPoleChanges::sums_by_difference) or to the model itself
/// (LoadedPoleModel::sums_by_difference).
/// @param change  null for the sums of the model itself
/// @param rows  G that are summed; rows of a Hermitian model stand for their mirror images, too
std::vector<Cplx> sums_by_difference_cpu(const StoredPoleRows& own, const PoleChange* change,
                                         const ElementRows& rows, double x_ry,
                                         const DifferenceBox& box);

}  // namespace quasi::gw
