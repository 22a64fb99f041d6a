#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// A plasmon-pole model laid out for vector units: separate planes of B = A/ω̃, τ = 1/ω̃ and ω̃.
///
/// If the model is Hermitian (A_GG' = A*_G'G, ω̃ symmetric, to `kHermitianTolerance`), the sum
/// over both triangles is real. It equals the sum over the lower triangle with the off-diagonal
/// elements doubled. `folded` says that the planes hold the doubled lower triangle, which halves
/// the work. See docs/theory/gw.md 6.2 for the equations.
///
/// The planes hold all rows of a model, or those of one slice (docs/theory/gw.md 4.3).
struct PolePlanes {
  std::int64_t n_g = 0;     ///< edge of the model
  ElementRows rows;         ///< rows that the planes hold
  std::int64_t stride = 0;  ///< columns of each row
  bool folded = false;      ///< true: the planes hold the doubled lower triangle
  std::vector<double> b_re, b_im, tau_per_ry, pole_ry;  ///< each [rows.size()][stride]
  /// Returns the position of an element in the planes.
  std::size_t at(std::int64_t g, std::int64_t h) const {
    return static_cast<std::size_t>((g - rows.begin) * stride + h);
  }
};

/// Largest relative departure, element by element, that still counts as Hermitian.
inline constexpr double kHermitianTolerance = 1e-13;
bool is_hermitian(const PlasmonPoleView& model);

/// Returns the number of columns that the planes keep of each row. A folded model keeps the lower
/// triangle, whose last row is the longest.
inline std::int64_t columns_of_rows(const ElementRows& rows, std::int64_t n_g, bool folded) {
  return folded ? rows.end : n_g;
}
PolePlanes make_pole_planes(const PlasmonPoleView& model, const ElementRows& rows);

/// Adds the diagonal plasmon-pole sums of one group of energies (LoadedPoleModel::add_diagonal).
///
/// Threads sum blocks of G of a fixed size. The partial sums are added in order, so that the result
/// does not depend on the number of threads.
///
/// @param products  M, [n_left][n_right][n_g]
/// @param sums      [n_left][n_energies of the whole call]
void add_gpp_diagonal_cpu(const PolePlanes& model, const PoleRules& rules, const PoleGroup& group,
                          View<const Cplx, 3> products, const DiagonalSums& sums);

}  // namespace quasi::gw
